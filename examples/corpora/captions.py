"""Strips of up to four digits of MNIST, and what is to be seen on them.

An image has three captions, which say the same in another order:

    from the left : three , one and three
    from the right : three , one and three
    two threes and a one

Features are principal components of the pixels; no pre-trained network is needed.
"""

import random
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, Sequence

import numpy as np

from fairseq_ext.tools import UsageError, atomic_path, make_folder
from fairseq_ext.twin.commands.idx import read_idx

from .files import check_outputs, find, write_lines
from .parallel import SPLITS
from .spoken_digits import NAMES

SEED = 1
CAPTIONS = 2  # of a training strip
CELL, CELLS, JITTER = 28, 4, 3
PLURALS = [f"{name}es" if name in ("six", "zero") else f"{name}s" for name in NAMES]
# training images that strips of the validation set are made of
HELD_BACK = 10000
# windows of the strip, which is halved before: pixels
WIDTH, STEP = 8, 4


# a row of digits: canvas (28, 112) in 0 .. 1, and the digits on it
Strip = tuple[np.ndarray, list[int]]


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    for split in ("train", "test"):
        parser.add_argument(
            f"--{split}", metavar=("IMAGES", "LABELS"), nargs=2, type=Path, required=True
        )
    counts = "strips for training, validation and testing"
    parser.add_argument("--strips", metavar="N", nargs=3, type=int, required=True, help=counts)
    windows = "13 windows of each strip, or the strip as one"
    parser.add_argument("--features", choices=("grid", "whole"), required=True, help=windows)
    parser.add_argument("--components", metavar="N", type=int, default=0, help="0 keeps the pixels")
    parser.add_argument("--output", metavar="FOLDER", type=Path, required=True)


def listed(words: Sequence[str]) -> str:
    """Return words with commas, and "and" before the last."""
    return " and ".join(filter(None, [" , ".join(words[:-1]), words[-1]]))


def captions_of(digits: Sequence[int]) -> list[str]:
    """Return the three captions of digits from left to right."""
    counts = sorted({(-digits.count(digit), digit) for digit in digits})
    groups = [
        f"a {NAMES[digit]}" if count == -1 else f"{NAMES[-count]} {PLURALS[digit]}"
        for count, digit in counts
    ]
    names = [NAMES[digit] for digit in digits]
    return [
        f"from the left : {listed(names)}",
        f"from the right : {listed(names[::-1])}",
        listed(groups),
    ]


def draw_strip(images: np.ndarray, labels: np.ndarray, rng: random.Random) -> Strip:
    """Return one to four of the digits (N, 28, 28) in some cells of a strip."""
    canvas, digits = np.zeros((CELL, CELL * CELLS)), []
    for cell in sorted(rng.sample(range(CELLS), rng.randint(1, CELLS))):
        number, shift = rng.randrange(len(images)), rng.randint(-JITTER, JITTER)
        begin = min(max(cell * CELL + shift, 0), CELL * (CELLS - 1))
        place = canvas[:, begin : begin + CELL]
        np.maximum(place, images[number] / 255, out=place)
        digits.append(int(labels[number]))
    return canvas, digits


def pixels(canvas: np.ndarray, kind: str) -> np.ndarray:
    """Return rows of means of 2 x 2 pixels: of the whole strip, or of each window of a grid."""
    rows, columns = canvas.shape
    small = canvas.reshape(rows // 2, 2, columns // 2, 2).mean(axis=(1, 3))
    if kind == "whole":
        return small.reshape(1, -1)
    starts = range(0, small.shape[1] - WIDTH + 1, STEP)
    return np.stack([small[:, start : start + WIDTH].ravel() for start in starts])


class Components:
    """Principal components of rows; their mean variance is one. count: 0 keeps the pixels."""

    def __init__(self, rows: np.ndarray, count: int):
        self.mean, self.axes = rows.mean(axis=0), np.eye(rows.shape[1])
        if not 0 <= count < rows.shape[1]:
            raise UsageError(f"--components {count}: allowed: 0 to {rows.shape[1] - 1}")
        if count:
            values, vectors = np.linalg.eigh(np.cov(rows, rowvar=False))
            self.axes = vectors[:, -count:] / np.sqrt(values[-count:].mean())
        else:
            self.mean = np.zeros_like(self.mean)

    def features(self, rows: np.ndarray, kind: str) -> np.ndarray:
        """Return the inputs of the model; rows of a grid also say which window they are."""
        vectors = (rows - self.mean) @ self.axes
        if kind == "grid":
            vectors = np.concatenate([vectors, np.eye(len(rows))], axis=1)
        return vectors.astype(np.float32)


def strips_by_split(args: Namespace, rng: random.Random) -> dict[str, list[Strip]]:
    """Return {split: strips}; every split has images of its own."""
    sets: dict[str, Any] = {}
    for name in ("train", "test"):
        files = [find(path) for path in getattr(args, name)]
        sets[name] = [read_idx(path, dimensions) for path, dimensions in zip(files, (3, 1))]
        if len({len(array) for array in sets[name]}) > 1:
            raise UsageError(f"{files[1]} has not as many labels as {files[0]} has images")
    back = min(HELD_BACK, len(sets["train"][0]) // 6)
    sets["valid"] = [array[-back:] for array in sets["train"]]
    sets["train"] = [array[:-back] for array in sets["train"]]
    strips = {}
    for split, count in zip(SPLITS, args.strips):
        images, labels = sets[split]
        strips[split] = [draw_strip(images, labels, rng) for _ in range(count)]
    return strips


def run(args: Namespace) -> None:
    """Write text/SPLIT, bin/SPLIT.features with their files, and raw/SPLIT.ref, all captions."""
    if min(args.strips) < 1:
        raise UsageError(f"--strips {' '.join(map(str, args.strips))}: allowed: 1 or more of each")
    written = ("raw/{}.ref", "text/{}", "bin/{}.features")
    outputs = [args.output / name.format(split) for split in SPLITS for name in written]
    check_outputs(outputs, [find(path) for path in (*args.train, *args.test)])
    rng = random.Random(SEED)
    strips = strips_by_split(args, rng)
    rows = np.concatenate([pixels(canvas, args.features) for canvas, _ in strips["train"]])
    components = Components(rows, args.components)
    make_folder(args.output / "bin" / "features")
    for split in SPLITS:
        count = CAPTIONS if split == "train" else 1
        texts: list[str] = []
        names: list[str] = []
        references = []
        for number, (canvas, digits) in enumerate(strips[split]):
            name, captions = f"features/{split}{number}.npy", captions_of(digits)
            vectors = components.features(pixels(canvas, args.features), args.features)
            with atomic_path(args.output / "bin" / name, flushes=False) as temporary:
                np.save(temporary, vectors)
            texts += rng.sample(captions, count)
            names += [name] * count
            references.append("\t".join(captions))
        write_lines(args.output / "raw" / f"{split}.ref", references)
        write_lines(args.output / "text" / split, texts)
        write_lines(args.output / "bin" / f"{split}.features", names)
        print(f"{split}: {len(references):,} strips, {len(texts):,} captions")
