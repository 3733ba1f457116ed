"""Spoken digits: recordings of one speaker after the other, written as words in characters."""

import io
import itertools
import random
import re
import wave
import zipfile

from recipe_tools import RecipeError
from recipe_tools.commands import execute
from recipe_tools.files import written
from recipe_tools.settings import SPLITS

from fairseq_ext.twin.commands.words import SEPARATORS

from .metrics import CharacterErrors, Right, WordErrors

KEYS = {"recordings", "digits", "strings", "valid", "test", "pause_ms", "seed", "hop_ms"}
OPTIONAL_KEYS = set()
METRICS = (CharacterErrors(), WordErrors(), Right())
UNIT = "characters"
BATCH = 6000
NAMES = "zero one two three four five six seven eight nine".split()
RECORDING = re.compile(r"(?:.*/)?(\d)_(\w+)_(\d+)\.wav")
RATE = 8000


def files(settings, raw):
    path = raw / settings.data["recordings"]
    if not path.is_file():
        raise RecipeError(f"RAW {raw}: there is no {settings.data['recordings']}")
    return {"recordings": path}


def task(settings):
    return ["--task", "speech_to_text"]


def TEXT(settings):  # noqa: N802  (a constant in the other kinds of data)
    return "raw/train.characters"


def held_out(settings, key):
    """Return a function (speaker, index) -> True if [data] `key` names the recording.

    The key holds a range of indices, such as 0-4, or names of speakers.
    """
    text = settings.data[key]
    indices = re.fullmatch(r"(\d+)-(\d+)", text)
    if indices:
        first, last = map(int, indices.groups())
        return lambda speaker, index: first <= index <= last
    if not text or any(word[0].isdigit() for word in text.split()):
        raise settings.error(key, "indices of recordings such as 0-4, or names of speakers")
    return lambda speaker, index: speaker in text.split()


def recordings_by_split(settings, path):
    """Return {split: {speaker: [(digit, samples as bytes)]}}; no recording is in two splits."""
    in_test, in_valid = held_out(settings, "test"), held_out(settings, "valid")
    recordings = {split: {} for split in SPLITS}
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            match = RECORDING.fullmatch(name)
            if not match:
                continue
            digit, speaker, index = int(match[1]), match[2], int(match[3])
            with wave.open(io.BytesIO(archive.read(name))) as stream:
                kind = stream.getnchannels(), stream.getsampwidth(), stream.getframerate()
                if kind != (1, 2, RATE):
                    raise RecipeError(f"{path}: {name}; allowed: mono, 16 bits, {RATE} Hz")
                samples = stream.readframes(stream.getnframes())
            split = "test" if in_test(speaker, index) else "train"
            split = "valid" if split == "train" and in_valid(speaker, index) else split
            recordings[split].setdefault(speaker, []).append((digit, samples))
    for split, speakers in recordings.items():
        if not speakers:
            raise RecipeError(f"{path}: [data] valid and test leave no recording for {split}")
    return recordings


def compose(recordings, count, lengths, pauses, rng):
    """Return `count` strings: [(list of digits, samples, speaker)].

    The speakers take turns; no recording comes again before all of its speaker have come.
    lengths: least and most digits; with 0 strings every recording is one by itself, once.
    pauses: least and most milliseconds between digits.
    """
    if not count:
        return [([d], samples, s) for s, many in recordings.items() for d, samples in many]
    strings, left = [], {speaker: [] for speaker in sorted(recordings)}
    for speaker in itertools.islice(itertools.cycle(left), count):
        chosen = []
        for _ in range(rng.randint(*lengths)):
            many = recordings[speaker]
            left[speaker] = left[speaker] or rng.sample(many, len(many))
            chosen.append(left[speaker].pop())
        parts = [chosen[0][1]]
        for _, samples in chosen[1:]:
            # not quite silence, whose logarithm would be an outlier
            pause = RATE * rng.randint(*pauses) // 1000
            steps = (rng.randint(-4, 4) for _ in range(pause))
            parts += [b"".join(step.to_bytes(2, "little", signed=True) for step in steps), samples]
        strings.append(([digit for digit, _ in chosen], b"".join(parts), speaker))
    return strings


def write_split(strings, split, folder):
    """Write wavs/SPLIT.tsv and its files, and raw/SPLIT.ref."""
    with written(folder / "wavs" / f"{split}.tsv") as table:
        table.write("id\taudio\ttgt_text\tspeaker\n")
        for number, (digits, samples, speaker) in enumerate(strings):
            name, text = f"{split}{number}", " ".join(NAMES[digit] for digit in digits)
            table.write(f"{name}\t{name}.wav\t{text}\t{speaker}\n")
            with wave.open(str(folder / "wavs" / f"{name}.wav"), "wb") as stream:
                stream.setparams((1, 2, RATE, 0, "NONE", ""))
                stream.writeframes(samples)
    with written(folder / "raw" / f"{split}.ref") as stream:
        stream.writelines(" ".join(NAMES[d] for d in digits) + "\n" for digits, *_ in strings)
    with written(folder / "raw" / f"{split}.characters") as stream:
        for digits, *_ in strings:
            text = SEPARATORS[UNIT].join(NAMES[digit] for digit in digits)
            stream.write(" ".join(text) + "\n")


def build(settings, files, folder, root, workers):
    counts, lengths = settings.numbers("strings", 3), settings.numbers("digits", 2)
    pauses, (seed,) = settings.numbers("pause_ms", 2), settings.numbers("seed", 1)
    if not 1 <= lengths[0] <= lengths[1] or pauses[0] > pauses[1]:
        raise settings.error("digits", "LEAST MOST from 1; [data] pause_ms: LEAST MOST")
    recordings = recordings_by_split(settings, files["recordings"])
    rng, sizes = random.Random(seed), {}
    (folder / "wavs").mkdir()
    for split, count in zip(SPLITS, counts):
        strings = compose(recordings[split], count, lengths, pauses, rng)
        write_split(strings, split, folder)
        sizes[split] = len(strings)
    command = ["fairseq-ext", "filter-banks", "--sample-rate", RATE, "--output", folder / "bin"]
    command += ["--root", root / "bin", "--hop-ms", settings.data["hop_ms"]]
    tables = [folder / "wavs" / f"{split}.tsv" for split in SPLITS]
    execute([*command, *tables], folder / "filter-banks.log")
    for path in (folder / "wavs").glob("*.wav"):
        path.unlink()
    return sizes
