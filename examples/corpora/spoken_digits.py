"""Spoken digits: recordings of one speaker after the other, written as words."""

import io
import itertools
import random
import re
import wave
import zipfile
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import NamedTuple, Sequence

from fairseq_ext.compat.text_lines import UNREADABLE
from fairseq_ext.tools import UsageError, atomic_path, make_folder

from .files import check_outputs, write_lines
from .parallel import SPLITS

SEED = 1
NAMES = "zero one two three four five six seven eight nine".split()
RECORDING = re.compile(r"(?:.*/)?(\d)_(\w+)_(\d+)\.wav")
RATE = 8000
PAUSES = (0, 120)  # least and most milliseconds between two digits
# separates the words of a line of characters
SPACE = "\u2581"

# speaker: [(digit, samples)]
Recordings = dict[str, list[tuple[int, bytes]]]


class Utterance(NamedTuple):
    """Digits that a speaker says, as samples of 16 bits."""

    digits: list[int]
    samples: bytes
    speaker: str

    @property
    def text(self) -> str:
        """Return the names of the digits."""
        return " ".join(NAMES[digit] for digit in self.digits)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    archive = ".zip of {digit}_{speaker}_{index}.wav"
    parser.add_argument("archive", metavar="ARCHIVE", type=Path, help=archive)
    which = "recordings that are in no other set: indices such as 0-4, or names of speakers"
    for split in ("test", "valid"):
        parser.add_argument(f"--{split}", metavar="WHICH", required=True, help=which)
    for option, count, meaning in (
        ("--digits", 2, "least and most digits of a string, all of one speaker"),
        ("--strings", 3, "strings for training, validation, testing; 0: each recording by itself"),
    ):
        parser.add_argument(option, nargs=count, type=int, required=True, help=meaning)
    parser.add_argument("--output", metavar="FOLDER", type=Path, required=True)


def is_named(which: str, speaker: str, index: int) -> bool:
    """True if --valid or --test names a recording."""
    indices = re.fullmatch(r"(\d+)-(\d+)", which)
    if indices:
        first, last = map(int, indices.groups())
        return first <= index <= last
    return speaker in which.split()


def recordings_by_split(args: Namespace) -> dict[str, Recordings]:
    """Return {split: recordings}; no recording is in two splits."""
    recordings: dict[str, Recordings] = {split: {} for split in SPLITS}
    try:
        with zipfile.ZipFile(args.archive) as archive:
            for name in sorted(archive.namelist()):
                match = RECORDING.fullmatch(name)
                if not match:
                    continue
                digit, speaker, index = int(match[1]), match[2], int(match[3])
                with wave.open(io.BytesIO(archive.read(name))) as stream:
                    kind = stream.getnchannels(), stream.getsampwidth(), stream.getframerate()
                    if kind != (1, 2, RATE):
                        raise UsageError(f"{args.archive}: {name}; allowed: mono, 16 bits, 8 kHz")
                    samples = stream.readframes(stream.getnframes())
                order = (split for split in ("test", "valid")
                         if is_named(getattr(args, split), speaker, index))  # fmt: skip
                recordings[next(order, "train")].setdefault(speaker, []).append((digit, samples))
    except (*UNREADABLE, wave.Error) as error:
        raise UsageError(f"{args.archive}: {error}") from error
    for split, speakers in recordings.items():
        if not speakers:
            raise UsageError(
                f"--valid {args.valid} --test {args.test}: no recording is left for {split}; "
                "allowed: indices of recordings such as 0-4, or names of speakers"
            )
    return recordings


def joined(parts: Sequence[bytes], rng: random.Random) -> bytes:
    """Return recordings with pauses between them."""
    samples = [parts[0]]
    for part in parts[1:]:
        # not quite silence, whose logarithm would be an outlier
        steps = (rng.randint(-4, 4) for _ in range(RATE * rng.randint(*PAUSES) // 1000))
        samples += [b"".join(step.to_bytes(2, "little", signed=True) for step in steps), part]
    return b"".join(samples)


def compose(
    recordings: Recordings, count: int, lengths: Sequence[int], rng: random.Random
) -> list[Utterance]:
    """Return `count` strings; 0: every recording by itself.

    The speakers take turns; no recording comes again before all of its speaker have come.
    lengths: least and most digits.
    """
    if not count:
        return [Utterance([d], samples, s) for s, many in recordings.items() for d, samples in many]
    strings = []
    left: Recordings = {speaker: [] for speaker in sorted(recordings)}
    for speaker in itertools.islice(itertools.cycle(left), count):
        chosen = []
        for _ in range(rng.randint(*lengths)):
            many = recordings[speaker]
            left[speaker] = left[speaker] or rng.sample(many, len(many))
            chosen.append(left[speaker].pop())
        digits, parts = [digit for digit, _ in chosen], [samples for _, samples in chosen]
        strings.append(Utterance(digits, joined(parts, rng), speaker))
    return strings


def write_recording(path: Path, samples: bytes) -> None:
    """Write a .wav file that is there wholly or not at all."""
    with atomic_path(path, flushes=False) as temporary:
        with wave.open(str(temporary), "wb") as stream:
            stream.setparams((1, 2, RATE, 0, "NONE", ""))
            stream.writeframes(samples)


def run(args: Namespace) -> None:
    """Write wavs/SPLIT.tsv with its files, raw/SPLIT.ref, and the same in characters beside it."""
    if not 1 <= args.digits[0] <= args.digits[1]:
        raise UsageError(f"--digits {args.digits[0]} {args.digits[1]}: allowed: LEAST MOST from 1")
    if min(args.strings) < 0:
        raise UsageError(f"--strings {' '.join(map(str, args.strings))}: allowed: numbers from 0")
    written = ("wavs/{}.tsv", "raw/{}.ref", "raw/{}.characters")
    outputs = [args.output / name.format(split) for split in SPLITS for name in written]
    check_outputs(outputs, [args.archive])
    recordings, rng = recordings_by_split(args), random.Random(SEED)
    make_folder(args.output / "wavs")
    for split, count in zip(SPLITS, args.strings):
        strings = compose(recordings[split], count, args.digits, rng)
        lines = ["id\taudio\ttgt_text\tspeaker"]
        for number, utterance in enumerate(strings):
            name = f"{split}{number}"
            lines.append(f"{name}\t{name}.wav\t{utterance.text}\t{utterance.speaker}")
            write_recording(args.output / "wavs" / f"{name}.wav", utterance.samples)
        write_lines(args.output / "wavs" / f"{split}.tsv", lines)
        texts = [utterance.text for utterance in strings]
        write_lines(args.output / "raw" / f"{split}.ref", texts)
        characters = (" ".join(text.replace(" ", SPACE)) for text in texts)
        write_lines(args.output / "raw" / f"{split}.characters", characters)
        print(f"{split}: {len(texts):,} strings")
