"""A small corpus of artificial speech: every letter is a tone of 60 ms, a blank is silence."""

import random
import wave

import numpy as np

from fairseq_ext import __main__ as command

RATE, LENGTH = 4000, 240
TONES = {"a": 300, "b": 520, "c": 800, "d": 1150, "e": 1600, " ": 0}


def sound(text, rng):
    """16-bit samples of a text."""
    time = np.arange(LENGTH) / RATE
    parts = [4000 * np.sin(2 * np.pi * TONES[letter] * time) for letter in text]
    samples = np.concatenate([*parts, np.zeros(100)])
    return (samples + rng.normal(scale=60, size=len(samples))).round().astype("<i2")


def write_split(folder, name, texts, rng):
    rows = ["id\taudio\ttgt_text"]
    for number, text in enumerate(texts):
        path = folder / f"{name}{number}.wav"
        with wave.open(str(path), "wb") as stream:
            stream.setparams((1, 2, RATE, 0, "NONE", ""))
            stream.writeframes(sound(text, rng).tobytes())
        rows.append(f"{name}{number}\t{path.name}\t{text}")
    (folder / f"{name}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder / f"{name}.tsv"


def prepared(folder, sizes):
    """DATA that `fairseq-ext filter-banks` made of {split: number of recordings}."""
    choose, rng, tables = random.Random(3), np.random.default_rng(3), []
    for name, size in sizes.items():
        texts = [
            "".join(choose.choices("abcde", k=choose.randint(1, 3)))
            + choose.choice(["", " " + choose.choice("abcde")])
            for _ in range(size)
        ]
        tables.append(write_split(folder, name, texts, rng))
    words = [*tables, "--sample-rate", RATE, "--mel-bins", 12, "--output", folder / "data"]
    assert command.main(["filter-banks", *map(str, words)]) == 0
    return folder / "data"
