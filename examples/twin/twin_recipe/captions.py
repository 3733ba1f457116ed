"""Strips of up to four digits of MNIST, and what is to be seen on them.

An image has three captions, which say the same in another order:

    from the left : three , one and three
    from the right : three , one and three
    two threes and a one

Features are made here, without any pre-trained network: pixels, or their principal components.
"""

import random

import numpy as np
from recipe_tools import RecipeError
from recipe_tools.commands import execute
from recipe_tools.files import written
from recipe_tools.settings import SPLITS

from fairseq_ext.twin.commands.idx import read_idx

from .metrics import Right, SacreBLEU
from .speech import NAMES

KEYS = {
    *("train_images", "train_labels", "test_images", "test_labels"),
    *("strips", "captions", "features", "components", "seed"),
}
OPTIONAL_KEYS = set()
METRICS = (Right(), SacreBLEU("bleu"))
UNIT = "token"
TEXT = None
BATCH = 4000
CELL, CELLS, JITTER = 28, 4, 3
PLURALS = [f"{name}es" if name == "six" or name == "zero" else f"{name}s" for name in NAMES]
# training images that strips of the validation set are made of
HELD_BACK = 10000
# windows of the strip, which is halved before: pixels
WIDTH, STEP = 8, 4


def files(settings, raw):
    keys = ("train_images", "train_labels", "test_images", "test_labels")
    paths = {key: raw / settings.data[key] for key in keys}
    for key, path in paths.items():
        if not path.is_file():
            raise RecipeError(f"RAW {raw}: there is no {settings.data[key]} ([data] {key})")
    return paths


def task(settings):
    return ["--task", "image_captioning"]


def listed(words):
    return " and ".join(filter(None, [" , ".join(words[:-1]), words[-1]]))


def captions_of(digits):
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


def strip(images, labels, rng):
    """Return a row of one to four digits in some cells: (28, 112) in 0 .. 1, and the digits."""
    canvas, digits = np.zeros((CELL, CELL * CELLS)), []
    for cell in sorted(rng.sample(range(CELLS), rng.randint(1, CELLS))):
        number, shift = rng.randrange(len(images)), rng.randint(-JITTER, JITTER)
        begin = min(max(cell * CELL + shift, 0), CELL * (CELLS - 1))
        place = canvas[:, begin : begin + CELL]
        np.maximum(place, images[number] / 255, out=place)
        digits.append(int(labels[number]))
    return canvas, digits


def halved(canvas):
    """Return the means of 2 x 2 pixels."""
    rows, columns = canvas.shape
    return canvas.reshape(rows // 2, 2, columns // 2, 2).mean(axis=(1, 3))


def pixels(canvas, kind):
    """Return rows of pixels: of the whole strip, or of each window of a grid."""
    small = halved(canvas)
    if kind == "whole":
        return small.reshape(1, -1)
    starts = range(0, small.shape[1] - WIDTH + 1, STEP)
    return np.stack([small[:, start : start + WIDTH].ravel() for start in starts])


class Components:
    """Principal components of rows; their mean variance is one. count: 0 keeps the pixels."""

    def __init__(self, rows, count):
        self.mean, self.axes = rows.mean(axis=0), None
        if count:
            values, vectors = np.linalg.eigh(np.cov(rows, rowvar=False))
            variances = values[-count:]
            self.axes = vectors[:, -count:] / np.sqrt(variances.mean())

    def __call__(self, rows):
        return rows if self.axes is None else (rows - self.mean) @ self.axes


def features(rows, components, kind):
    """Return the inputs of the model; rows of a grid also say which window they are."""
    vectors = components(rows)
    if kind == "grid":
        vectors = np.concatenate([vectors, np.eye(len(rows))], axis=1)
    return vectors.astype(np.float32)


def strips_by_split(settings, files, rng):
    """Return {split: [(canvas, digits)]}; every split has images of its own."""
    arrays = {key: read_idx(path, 3 if "images" in key else 1) for key, path in files.items()}
    for side in ("train", "test"):
        if len(arrays[f"{side}_images"]) != len(arrays[f"{side}_labels"]):
            raise settings.error(f"{side}_labels", f"as many as in {files[f'{side}_images']}")
    train, labels = arrays["train_images"], arrays["train_labels"]
    back = min(HELD_BACK, len(train) // 6)
    sources = {
        "train": (train[:-back], labels[:-back]),
        "valid": (train[-back:], labels[-back:]),
        "test": (arrays["test_images"], arrays["test_labels"]),
    }
    counts = dict(zip(SPLITS, settings.numbers("strips", 3)))
    return {split: [strip(*sources[split], rng) for _ in range(counts[split])] for split in SPLITS}


def write_split(split, strips, how_many, components, kind, folder, rng):
    """Write the features, raw/SPLIT.ref, text/SPLIT and bin/SPLIT.features."""
    texts, names, references = [], [], []
    for number, (canvas, digits) in enumerate(strips):
        name = f"features/{split}{number}.npy"
        np.save(folder / "bin" / name, features(pixels(canvas, kind), components, kind))
        captions = captions_of(digits)
        chosen = rng.sample(captions, how_many)
        texts += chosen
        names += [name] * how_many
        references.append("\t".join(captions))
    for path, lines in (
        (folder / "raw" / f"{split}.ref", references),
        (folder / "text" / split, texts),
        (folder / "bin" / f"{split}.features", names),
    ):
        with written(path) as stream:
            stream.writelines(line + "\n" for line in lines)
    return len(texts)


def build(settings, files, folder, root, workers):
    (seed,), (how_many,) = settings.numbers("seed", 1), settings.numbers("captions", 1)
    (count,), kind = settings.numbers("components", 1), settings.data["features"]
    if kind not in ("grid", "whole"):
        raise settings.error("features", "grid, whole")
    if not 1 <= how_many <= 3:
        raise settings.error("captions", "1, 2 or 3 of each training image")
    rng = random.Random(seed)
    strips = strips_by_split(settings, files, rng)
    rows = np.concatenate([pixels(canvas, kind) for canvas, _ in strips["train"]])
    if count >= rows.shape[1]:
        raise settings.error("components", f"less than {rows.shape[1]}; 0 keeps the pixels")
    components, counts = Components(rows, count), {}
    (folder / "text").mkdir()
    (folder / "bin" / "features").mkdir(parents=True)
    command = ["fairseq-preprocess", "--only-source", "--workers", workers]
    for split in SPLITS:
        captions_per_image = how_many if split == "train" else 1
        counts[split] = write_split(
            split, strips[split], captions_per_image, components, kind, folder, rng
        )
        command += [f"--{split}pref", folder / "text" / split]
    execute([*command, "--destdir", folder / "bin"], folder / "preprocess.log")
    return counts
