"""A made-up corpus, binarised."""

import itertools
import random
from pathlib import Path

LANGS = ("aa", "bb")


def write_corpus(folder: Path, sentences: int, vocab: int, length: int) -> None:
    """Binarised sentence pairs of random words: Zipf frequencies, lengths around ``length``."""
    from fairseq_cli import preprocess

    draw = random.Random(1)
    words = [f"w{number}" for number in range(vocab)]
    weights = list(itertools.accumulate(1 / (rank + 5) for rank in range(vocab)))
    for split, lines in (("train", sentences), ("valid", 128)):
        for lang in LANGS:
            with open(folder / f"{split}.{lang}", "w", encoding="utf-8") as out:
                for _ in range(lines):
                    count = max(2, int(draw.gauss(length, length / 3)))
                    out.write(" ".join(draw.choices(words, cum_weights=weights, k=count)) + "\n")
    arguments = ["-s", LANGS[0], "-t", LANGS[1], "--joined-dictionary", "--destdir"]
    arguments += [str(folder / "bin"), "--trainpref", str(folder / "train")]
    arguments += ["--validpref", str(folder / "valid")]
    from fairseq import options

    preprocess.main(options.get_preprocessing_parser().parse_args(arguments))
