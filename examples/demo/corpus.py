#!/usr/bin/env python3
"""Write the demo's parallel corpus: raw text, one sentence a line, files ``SPLIT.LANG``.

    python examples/demo/corpus.py OUTPUT --langs en de --train 20000 --valid 500 --test 500

The sentences come from the grammar in ``demo_grammar``.  The same options and seed give the same
files.  No two lines of the whole corpus share a sentence in any language, so a held-out sentence
was never a training sentence, in either direction.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import sys
from pathlib import Path
from typing import Dict, Iterator, List, Sequence, Tuple

from demo_grammar import LANGUAGES, sample_sentence

SPLITS = ("train", "valid", "test")


def parallel_sentences(langs: Sequence[str], seed: int) -> Iterator[Tuple[str, ...]]:
    """Yield endless parallel sentences, in the order of ``langs``, none repeated in any language.

    :raises ValueError: for a language that the grammar does not speak
    """
    unknown = [lang for lang in langs if lang not in LANGUAGES]
    if unknown or len(set(langs)) != len(langs):
        raise ValueError(
            f"--langs {' '.join(langs)}: allowed: different codes of {', '.join(LANGUAGES)}"
        )
    rng = random.Random(seed)
    seen: List[set] = [set() for _ in langs]
    while True:
        meaning = sample_sentence(rng)
        row = tuple(LANGUAGES[lang](meaning) for lang in langs)
        if any(text in texts for text, texts in zip(row, seen)):
            continue
        for text, texts in zip(row, seen):
            texts.add(text)
        yield row


def make_corpus(
    langs: Sequence[str], sizes: Dict[str, int], seed: int
) -> Dict[str, List[Tuple[str, ...]]]:
    """Return the rows of every split; valid and test are drawn first, independently of train.

    :param sizes: number of sentence pairs by split
    """
    for split, size in sizes.items():
        if size < 1:
            raise ValueError(f"--{split} {size}: at least one sentence is needed")
    source = parallel_sentences(langs, seed)
    order = sorted(sizes, key=lambda split: split == "train")
    return {split: list(itertools.islice(source, sizes[split])) for split in order}


def write_corpus(folder: Path, langs: Sequence[str], sizes: Dict[str, int], seed: int) -> None:
    """Write ``folder/SPLIT.LANG``; every file appears under its name only when complete."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in make_corpus(langs, sizes, seed).items():
        for lang, column in zip(langs, zip(*rows)):
            path = folder / f"{split}.{lang}"
            partial = path.with_name(path.name + ".partial")
            partial.write_text("".join(text + "\n" for text in column), encoding="utf-8")
            os.replace(partial, path)


def main(argv: Sequence[str]) -> int:
    """Parse the options and write the corpus; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="folder in which the text files are written")
    parser.add_argument(
        "--langs",
        nargs="+",
        action="extend",
        help=f"language codes, of {', '.join(LANGUAGES)} (default: en de)",
    )
    parser.add_argument("--train", type=int, default=20000, help="number of training sentences")
    parser.add_argument("--valid", type=int, default=500, help="number of validation sentences")
    parser.add_argument("--test", type=int, default=500, help="number of test sentences")
    parser.add_argument("--seed", type=int, default=1, help="seed that draws the sentences")
    args = parser.parse_args(argv)
    sizes = {split: getattr(args, split) for split in SPLITS}
    try:
        write_corpus(args.output, args.langs or ["en", "de"], sizes, args.seed)
    except ValueError as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
