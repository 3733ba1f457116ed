"""Digits of MNIST as lines of black and white pixels, for language models."""

import numpy as np
from recipe_tools import RecipeError
from recipe_tools.settings import SPLITS

from fairseq_ext.twin.commands.idx import read_idx
from fairseq_ext.twin.commands.pixel_lines import binarise, pixel_lines

from . import language
from .metrics import Nats

KEYS = {"train_images", "test_images", "images", "binarise", "seed"}
OPTIONAL_KEYS = set()
METRICS = (Nats(),)
UNIT = "token"
TEXT = None
BATCH = 40000
LENGTH = 28 * 28 + 1


def files(settings, raw):
    paths = {key: raw / settings.data[key] for key in ("train_images", "test_images")}
    for key, path in paths.items():
        if not path.is_file():
            raise RecipeError(f"RAW {raw}: there is no {settings.data[key]} ([data] {key})")
    return paths


def task(settings):
    words = ["--task", "language_modeling", "--sample-break-mode", "eos"]
    return [*words, "--tokens-per-sample", LENGTH]


def split_images(settings, files):
    """Return {split: (N, 28, 28)}; the last training images are for validation."""
    counts = dict(zip(SPLITS, settings.numbers("images", 3)))
    train = read_idx(files["train_images"], 3)
    test = read_idx(files["test_images"], 3)
    if min(counts.values()) < 1 or counts["train"] + counts["valid"] > len(train):
        raise settings.error("images", f"numbers from 1; train and valid together {len(train)}")
    return {
        "train": train[: counts["train"]],
        "valid": train[-counts["valid"] :],
        "test": test[: counts["test"]],
    }


def build(settings, files, folder, root, workers):
    (seed,), how = settings.numbers("seed", 1), settings.data["binarise"]
    if how not in ("threshold", "sample"):
        raise settings.error("binarise", "threshold, sample")
    rng, counts = np.random.default_rng(seed), {}
    for split, images in split_images(settings, files).items():
        bits = binarise(images, rng=rng if how == "sample" else None)
        (folder / "raw" / f"{split}.ref").write_bytes(pixel_lines(bits))
        counts[split] = len(images)
    language.binarise(folder, workers)
    return counts
