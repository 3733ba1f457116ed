"""Strings of spoken digits: who speaks, which recordings, and what is written."""

import io
import random
import wave
import zipfile
from argparse import ArgumentParser

import numpy as np
import pytest
from corpora import spoken_digits

from fairseq_ext.tools import UsageError


@pytest.fixture
def recordings(tmp_path):
    """An archive of 2 speakers, 10 digits, indices 0 .. 3, each a different constant."""
    path = tmp_path / "recordings.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("recordings/README", "no recording")
        for number in range(80):
            digit, speaker, index = number % 10, ("ann", "bob")[number // 40], number // 10 % 4
            file = io.BytesIO()
            with wave.open(file, "wb") as stream:
                stream.setparams((1, 2, spoken_digits.RATE, 0, "NONE", ""))
                stream.writeframes(np.full(400, 1000 + number, dtype="<i2").tobytes())
            archive.writestr(f"recordings/{digit}_{speaker}_{index}.wav", file.getvalue())
    return path


def arguments(archive, folder, **changes):
    """The arguments of the command."""
    values = {"test": "0-0", "valid": "1-1", "digits": "2 3", "strings": "12 4 5"}
    values.update({"output": str(folder), **changes})
    words = [str(archive)]
    for name, value in values.items():
        several = name in ("digits", "strings")
        words += [f"--{name}", *(value.split() if several else [value])]
    parser = ArgumentParser()
    spoken_digits.add_arguments(parser)
    return parser.parse_args(words)


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_what_is_written(recordings, tmp_path, capsys):
    out = tmp_path / "out"
    spoken_digits.run(arguments(recordings, out))
    assert "train: 12 strings" in capsys.readouterr().out
    rows = [line.split("\t") for line in lines(out / "wavs" / "test.tsv")]
    assert rows[0] == ["id", "audio", "tgt_text", "speaker"]
    assert [row[2] for row in rows[1:]] == lines(out / "raw" / "test.ref")
    assert all(len(row[2].split()) in (2, 3) for row in rows[1:]) and len(rows) == 6
    assert all((out / "wavs" / row[1]).is_file() for row in rows[1:])
    texts, characters = (lines(out / "raw" / f"train.{name}") for name in ("ref", "characters"))
    assert [line.split() for line in characters] == [list(t.replace(" ", "\u2581")) for t in texts]


def test_an_interruption_leaves_recordings_as_they_were(recordings, tmp_path, monkeypatch):
    """Half of one would be a shorter recording."""
    out = tmp_path / "out"
    spoken_digits.run(arguments(recordings, out))
    before = {path.name: path.read_bytes() for path in (out / "wavs").iterdir()}

    def interrupted(stream, samples):
        stream.writeframesraw(samples[:10])
        raise KeyboardInterrupt

    monkeypatch.setattr(wave.Wave_write, "writeframes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        spoken_digits.run(arguments(recordings, out))
    assert {path.name: path.read_bytes() for path in (out / "wavs").iterdir()} == before


def of_split(args):
    """{split: the numbers of the recordings in it}; a recording's samples are its number."""
    return {
        split: {
            int(np.frombuffer(samples, "<i2")[0]) - 1000
            for many in speakers.values()
            for _, samples in many
        }
        for split, speakers in spoken_digits.recordings_by_split(args).items()
    }


def test_a_recording_is_in_one_split(recordings, tmp_path):
    numbers = of_split(arguments(recordings, tmp_path))
    assert [len(numbers[split]) for split in ("train", "valid", "test")] == [40, 20, 20]
    assert len(set.union(*numbers.values())) == 80
    assert all(number // 10 % 4 == 0 for number in numbers["test"])
    numbers = of_split(arguments(recordings, tmp_path, test="bob", valid="3-3"))
    assert numbers["test"] == set(range(40, 80)) and len(numbers["valid"]) == 10
    assert not numbers["train"] & numbers["valid"]


def test_composed_strings():
    rng = random.Random(1)
    speakers = {
        "ann": [(n, bytes([n, 0]) * 50) for n in range(10)],
        "bob": [(7, b"\x07\x00" * 50)],
    }
    for digits, samples, speaker in spoken_digits.compose(speakers, 40, (2, 4), rng):
        assert 2 <= len(digits) <= 4 and (speaker == "ann" or set(digits) == {7})
        values = np.frombuffer(samples, "<i2")
        assert list(values[:50]) == [digits[0]] * 50
        assert list(values[-50:]) == [digits[-1]] * 50
        pauses = len(values) - 50 * len(digits)
        assert 0 <= pauses <= spoken_digits.RATE * 120 // 1000 * (len(digits) - 1)
    # each recording of a speaker comes before one comes again
    dealt = spoken_digits.compose(speakers, 6, (2, 2), rng)
    assert [speaker for *_, speaker in dealt] == ["ann", "bob"] * 3
    assert len({digit for digits, _, speaker in dealt if speaker == "ann" for digit in digits}) == 6
    single = spoken_digits.compose(speakers, 0, (1, 1), rng)
    assert [digits for digits, *_ in single] == [[n] for n in range(10)] + [[7]]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"test": "0..4"}, r"--test 0\.\.4: no recording is left for test; allowed: indices"),
        ({"test": "zoe"}, r"--valid 1-1 --test zoe: no recording is left for test"),
        ({"digits": "3 2"}, r"--digits 3 2: allowed: LEAST MOST from 1"),
        ({"strings": "3 -2 2"}, r"--strings 3 -2 2: allowed: numbers from 0"),
    ],
)
def test_faults_are_named(recordings, tmp_path, changes, message):
    with pytest.raises(UsageError, match=message):
        spoken_digits.run(arguments(recordings, tmp_path / "out", **changes))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "change, message",
    [
        # of the first recording: bytes of what is packed, the flag of encryption, the compression
        ({30: 0xFF, 31: 0xFF}, "Error -3 while decompressing data"),
        ({6: 1}, "is encrypted"),
        ({8: 99}, "compression method"),
    ],
)
def test_an_archive_that_is_damaged_or_not_supported_is_named(tmp_path, change, message):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("1_a_1.wav", bytes(1000))
    content = bytearray(path.read_bytes())
    for place, value in change.items():
        content[place + (len("1_a_1.wav") if place >= 30 else 0)] = value
        if place < 30:  # the list at the end has the same two bytes later
            content[content.index(b"PK\x01\x02") + place + 2] = value
    path.write_bytes(content)
    with pytest.raises(UsageError, match=rf"a\.zip: .*{message}"):
        spoken_digits.run(arguments(path, tmp_path / "out"))


def test_what_is_no_archive_is_named(tmp_path):
    (tmp_path / "a.zip").write_text("nothing", encoding="utf-8")
    with pytest.raises(UsageError, match=r"a\.zip: File is not a zip file"):
        spoken_digits.run(arguments(tmp_path / "a.zip", tmp_path / "out"))
