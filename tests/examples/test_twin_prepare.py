"""prepare.py of examples/twin on small data of every kind."""

import gzip
import io
import random
import re
import struct
import wave
import zipfile
from collections import Counter

import numpy as np
import pytest
from fairseq import options
from fairseq_cli import preprocess
from recipe_tools import RecipeError
from twin_recipe import captions, language, speech, translation
from twin_recipe.settings import FOLDER

from fairseq_ext import __main__ as command


def in_process(words, log, **_unused):
    """What `execute` does, without a process of its own."""
    name, *rest = map(str, words)
    if name == "fairseq-ext":
        assert command.main(rest) == 0
    else:
        preprocess.main(options.get_preprocessing_parser().parse_args(rest))


@pytest.fixture(autouse=True)
def no_processes(monkeypatch):
    for module in (captions, language, speech, translation):
        monkeypatch.setattr(module, "execute", in_process)


def changed(tmp_path, recipe, **values):
    """The settings of a recipe with other values in [data]."""
    text = (FOLDER / f"{recipe}.cfg").read_text(encoding="utf-8")
    for key, value in values.items():
        text, count = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", text, count=1)
        assert count == 1, key
    path = tmp_path / f"{recipe}.cfg"
    path.write_text(text, encoding="utf-8")
    return path


def prepare(script, raw, data, recipe):
    words = [raw, data, "--recipe", recipe, "--workers", 1]
    script("prepare", "twin").main(list(map(str, words)))


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


# ---------------------------------------------------------------- spoken digits


@pytest.fixture
def recordings(tmp_path):
    """RAW with 2 speakers, 10 digits, indices 0 .. 3, each a different constant."""
    (tmp_path / "raw" / "fsdd").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "raw" / "fsdd" / "recordings.zip", "w") as archive:
        archive.writestr("recordings/README", "no recording")
        for number in range(80):
            digit, speaker, index = number % 10, ("ann", "bob")[number // 40], number // 10 % 4
            file = io.BytesIO()
            with wave.open(file, "wb") as stream:
                stream.setparams((1, 2, speech.RATE, 0, "NONE", ""))
                stream.writeframes(np.full(400, 1000 + number, dtype="<i2").tobytes())
            archive.writestr(f"recordings/{digit}_{speaker}_{index}.wav", file.getvalue())
    return tmp_path / "raw"


def test_strings_of_digits(script, recordings, tmp_path, capsys):
    recipe = changed(tmp_path, "digits", test="0-0", valid="1-1", strings="12 4 5", digits="2 3")
    prepare(script, recordings, tmp_path / "data", recipe)
    assert "train          12" in capsys.readouterr().out
    folder = tmp_path / "data" / "bin"
    assert f"audio_root: {folder}/features" in (folder / "config.yaml").read_text()
    rows = [line.split("\t") for line in lines(folder / "test.tsv")[1:]]
    assert [row[2] for row in rows] == lines(tmp_path / "data" / "raw" / "test.ref")
    assert all(len(row[2].split()) in (2, 3) for row in rows) and len(rows) == 5
    texts = lines(tmp_path / "data" / "raw" / "train.ref")
    characters = lines(tmp_path / "data" / "raw" / "train.characters")
    assert [line.split() for line in characters] == [list(t.replace(" ", "\u2581")) for t in texts]
    assert all((folder / "features" / row[1]).is_file() for row in rows)
    assert not list((tmp_path / "data" / "wavs").glob("*.wav"))
    prepare(script, recordings, tmp_path / "data", recipe)
    assert "is up to date" in capsys.readouterr().out


def of_split(recordings, settings):
    """{split: the numbers of the recordings in it}; a recording's samples are its number."""
    found = speech.recordings_by_split(settings, recordings / "fsdd" / "recordings.zip")
    return {
        split: {
            int(np.frombuffer(samples, "<i2")[0]) - 1000
            for many in speakers.values()
            for _, samples in many
        }
        for split, speakers in found.items()
    }


def settings_of(path):
    from twin_recipe.settings import read_settings

    return read_settings(path)


def test_a_recording_is_in_one_split(recordings, tmp_path):
    by_index = settings_of(changed(tmp_path, "digits", test="0-0", valid="1-1"))
    found = of_split(recordings, by_index)
    assert [len(found[split]) for split in ("train", "valid", "test")] == [40, 20, 20]
    assert len(set.union(*found.values())) == 80
    assert all(number // 10 % 4 == 0 for number in found["test"])
    by_speaker = settings_of(changed(tmp_path, "digits", test="bob", valid="3-3"))
    found = of_split(recordings, by_speaker)
    assert found["test"] == set(range(40, 80)) and len(found["valid"]) == 10
    assert not found["train"] & found["valid"]


def test_composed_strings():
    rng = random.Random(1)
    given = {"ann": [(n, bytes([n, 0]) * 50) for n in range(10)], "bob": [(7, b"\x07\x00" * 50)]}
    for digits, samples, speaker in speech.compose(given, 40, (2, 4), (10, 20), rng):
        assert 2 <= len(digits) <= 4 and (speaker == "ann" or set(digits) == {7})
        values = np.frombuffer(samples, "<i2")
        assert list(values[:50]) == [digits[0]] * 50
        assert list(values[-50:]) == [digits[-1]] * 50
        pauses = len(values) - 50 * len(digits)
        least, most = (speech.RATE * ms // 1000 * (len(digits) - 1) for ms in (10, 20))
        assert least <= pauses <= most
    # each recording of a speaker comes before one comes again
    dealt = speech.compose(given, 6, (2, 2), (0, 0), rng)
    assert [speaker for *_, speaker in dealt] == ["ann", "bob"] * 3
    assert len({digit for digits, _, speaker in dealt if speaker == "ann" for digit in digits}) == 6
    single = speech.compose(given, 0, (1, 1), (0, 0), rng)
    assert [digits for digits, *_ in single] == [[n] for n in range(10)] + [[7]]


@pytest.mark.parametrize(
    "values, message",
    [
        ({"test": "0..4"}, r"test = 0..4; allowed: indices of recordings such as 0-4, or names"),
        ({"test": "zoe", "valid": "1-1"}, r"\[data\] valid and test leave no recording for test"),
        ({"strings": "3 3"}, r"strings = 3 3; allowed: 3 whole numbers"),
        ({"digits": "3 2"}, r"digits = 3 2; allowed: LEAST MOST from 1"),
    ],
)
def test_faults_of_the_digits_are_named(script, recordings, tmp_path, values, message):
    with pytest.raises(RecipeError, match=message):
        prepare(script, recordings, tmp_path / "data", changed(tmp_path, "digits", **values))
    assert not (tmp_path / "data").exists()


# ---------------------------------------------------------------- images


def write_idx(path, array):
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes()))


@pytest.fixture
def mnist(tmp_path):
    """RAW with images whose pixels are all their label times 20."""
    folder = tmp_path / "raw" / "mnist"
    folder.mkdir(parents=True)
    for stem, size in (("train", 60), ("t10k", 30)):
        labels = np.arange(size) % 10
        images = np.broadcast_to(20 * labels[:, None, None], (size, 28, 28))
        write_idx(folder / f"{stem}-images-idx3-ubyte.gz", images)
        write_idx(folder / f"{stem}-labels-idx1-ubyte.gz", labels)
    return tmp_path / "raw"


def test_pixels(script, mnist, tmp_path):
    recipe = changed(tmp_path, "pixels", images="20 10 8", binarise="threshold")
    prepare(script, mnist, tmp_path / "data", recipe)
    found = lines(tmp_path / "data" / "raw" / "valid.ref")
    # the last ten training images have the labels 0 .. 9; from 127.5 on a pixel is 1
    assert found == [" ".join(784 * ["1" if 20 * n >= 127.5 else "0"]) for n in range(10)]
    assert (tmp_path / "data" / "bin" / "test.bin").is_file()
    with pytest.raises(RecipeError, match="images = 55 10 8; allowed: numbers from 1; train and"):
        prepare(script, mnist, tmp_path / "more", changed(tmp_path, "pixels", images="55 10 8"))


def test_captions_of_digits():
    assert captions.captions_of([3]) == [
        "from the left : three",
        "from the right : three",
        "a three",
    ]
    assert captions.captions_of([6, 1, 6, 0]) == [
        "from the left : six , one , six and zero",
        "from the right : zero , six , one and six",
        "two sixes , a zero and a one",
    ]


def test_strips_show_their_digits(mnist):
    labels = np.arange(10)
    images = np.broadcast_to(20 * labels[:, None, None], (10, 28, 28))
    rng, counts = random.Random(0), Counter()
    for _ in range(200):
        canvas, digits = captions.strip(images, labels, rng)
        assert canvas.shape == (28, 112) and canvas.max() <= 1
        shades = {20 * digit / 255 for digit in digits} | {0.0}
        assert set(np.unique(canvas)) <= shades
        counts[len(digits)] += 1
    assert set(counts) == {1, 2, 3, 4}


def test_features_of_strips():
    rng = np.random.default_rng(0)
    canvas = rng.random((28, 112))
    assert captions.halved(canvas)[3, 5] == pytest.approx(canvas[6:8, 10:12].mean())
    grid, whole = captions.pixels(canvas, "grid"), captions.pixels(canvas, "whole")
    assert grid.shape == (13, 14 * 8) and whole.shape == (1, 14 * 56)
    np.testing.assert_array_equal(grid[2], captions.halved(canvas)[:, 8:16].ravel())
    seen = captions.features(grid, captions.Components(grid, 0), "grid")
    np.testing.assert_allclose(seen[:, :112], grid, rtol=1e-6)
    np.testing.assert_array_equal(seen[:, 112:], np.eye(13))


def test_components_hold_most_of_the_variance():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(500, 2)) * [5, 3]
    rows = hidden @ rng.normal(size=(2, 6)) + 0.01 * rng.normal(size=(500, 6)) + 7
    found = captions.Components(rows, 2)(rows)
    assert found.mean(axis=0) == pytest.approx([0, 0], abs=1e-9)
    assert found.var(axis=0, ddof=1).mean() == pytest.approx(1)
    back = np.linalg.lstsq(found, rows - rows.mean(axis=0), rcond=None)[0]
    assert np.abs(found @ back - (rows - rows.mean(axis=0))).max() < 0.1


def test_captions(script, mnist, tmp_path):
    recipe = changed(tmp_path, "captions", strips="30 6 5", components=3)
    prepare(script, mnist, tmp_path / "data", recipe)
    folder = tmp_path / "data"
    names = lines(folder / "bin" / "train.features")
    assert len(names) == 60 and len(set(names)) == 30
    assert np.load(folder / "bin" / names[0]).shape == (13, 3 + 13)
    for line, text in zip(lines(folder / "raw" / "test.ref"), lines(folder / "text" / "test")):
        assert text in line.split("\t") and len(line.split("\t")) == 3
    for values, message in (
        ({"captions": 4}, "captions = 4; allowed: 1, 2 or 3 of each training image"),
        ({"features": "conv"}, "features = conv; allowed: grid, whole"),
        ({"components": 112}, "components = 112; allowed: less than 112; 0 keeps the pixels"),
    ):
        with pytest.raises(RecipeError, match=message):
            prepare(script, mnist, tmp_path / "more", changed(tmp_path, "captions", **values))


# ---------------------------------------------------------------- text


def test_language(script, tmp_path):
    (tmp_path / "raw" / "ptb").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "raw" / "ptb" / "ptb.zip", "w") as archive:
        for split in ("train", "valid", "test"):
            archive.writestr(f"ptb.{split}.txt", f" a <unk> {split} \n\n b a \n")
    prepare(script, tmp_path / "raw", tmp_path / "data", "ptb")
    assert lines(tmp_path / "data" / "raw" / "test.ref") == ["a <unk> test", "b a"]
    recipe = changed(tmp_path, "ptb", train_lines=1)
    prepare(script, tmp_path / "raw", tmp_path / "fewer", recipe)
    assert lines(tmp_path / "fewer" / "raw" / "train.ref") == ["a <unk> train"]
    assert len(lines(tmp_path / "fewer" / "raw" / "valid.ref")) == 2
    recipe = changed(tmp_path, "ptb", test="other.txt")
    with pytest.raises(RecipeError, match=r"ptb.zip has no other.txt \(\[data\] test\)"):
        prepare(script, tmp_path / "raw", tmp_path / "more", recipe)


def test_translation(script, raw, tmp_path):
    values = {"train": "train", "valid": "val", "test": "test_a", "vocabulary": 50}
    values["train_lines"] = 30
    recipe = changed(tmp_path, "multi30k", **values)
    prepare(script, raw, tmp_path / "data", recipe)
    references = lines(tmp_path / "data" / "raw" / "test.ref")
    assert references == lines(raw / "test_a.en")
    assert lines(tmp_path / "data" / "raw" / "train.de") == lines(raw / "train.de")[:30]
    assert (tmp_path / "data" / "bin" / "train.de-en.de.bin").is_file()


def test_missing_raw_files_are_named(script, tmp_path):
    (tmp_path / "raw").mkdir()
    for recipe, name in (
        ("digits", "fsdd/recordings.zip"),
        ("ptb", "ptb/ptb.zip"),
        ("pixels", "mnist/t.*ubyte.gz"),
        ("captions", "mnist/t.*ubyte.gz"),
    ):
        with pytest.raises(RecipeError, match=f"there is no {name}"):
            prepare(script, tmp_path / "raw", tmp_path / "data", recipe)
