"""A made-up corpus, binarised: random words, of which every one is in the dictionary."""

import contextlib
import io
import itertools
import random
import string
from pathlib import Path
from typing import List

from fairseq import options
from fairseq_cli import preprocess

LANGS = ("aa", "bb")
# fairseq's own entries, which every dictionary has besides the words
SPECIAL = 4
SPLITS = ("train", "valid")
# deviation of a translation's length from its source's, as a share of that
DIFFERENCE = 0.15


def languages(pairs: int) -> List[str]:
    """Return the languages aa, bb, cc ... of so many pairs, which all share the first language."""
    return [2 * letter for letter in string.ascii_lowercase[: pairs + 1]]


def star(pairs: int) -> List[str]:
    """Return the pairs ["aa-bb", "aa-cc", ...]."""
    first, *others = languages(pairs)
    return [f"{first}-{other}" for other in others]


def write_corpus(
    folder: Path,
    sentences: int,
    vocab: int,
    length: int,
    valid: int = 128,
    pairs: int = 1,
    spread: int = 3,
) -> Path:
    """Write binarised sentence pairs of random words and return the folder of the data.

    vocab: entries of the dictionary, fairseq's four among them. length: mean number of words, with
    the deviation length / spread; spread 0: the number of all. pairs: aa-bb, aa-cc and so on.
    The sentences of a line are about as long in all languages, as those of a translation are:
    otherwise much of a minibatch, which is sorted by one side's length, would be padding.
    """
    draw = random.Random(1)
    words = [f"w{number}" for number in range(vocab - SPECIAL)]
    weights = list(itertools.accumulate(1 / (rank + 5) for rank in range(len(words))))
    dictionary = folder / "words.txt"
    dictionary.write_text("".join(f"{word} 1\n" for word in words), encoding="utf-8")
    for split, lines in zip(SPLITS, (sentences, valid)):
        means = [draw.gauss(length, length / spread) if spread else length for _ in range(lines)]
        for lang in languages(pairs):
            with open(folder / f"{split}.{lang}", "w", encoding="utf-8") as out:
                for mean in means:
                    count = max(2, round(draw.gauss(mean, DIFFERENCE * mean) if spread else mean))
                    out.write(" ".join(draw.choices(words, cum_weights=weights, k=count)) + "\n")
    for pair in star(pairs):
        source, target = pair.split("-")
        arguments = ["-s", source, "-t", target, "--destdir", str(folder / "bin")]
        arguments += ["--srcdict", str(dictionary), "--tgtdict", str(dictionary)]
        for split in SPLITS:
            arguments += [f"--{split}pref", str(folder / split)]
        with contextlib.redirect_stdout(io.StringIO()):
            preprocess.main(options.get_preprocessing_parser().parse_args(arguments))
    return folder / "bin"
