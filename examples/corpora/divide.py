"""Divide text in several languages among their pairs, so that no sentence is in two pairs.

Line N is the same sentence in all languages. The lines of a pair come in random order, so that the
first so many of them are a random part.
"""

import itertools
import random
from argparse import ArgumentParser, Namespace
from pathlib import Path

from .files import aligned, check_languages, write_lines


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--languages", nargs="+", required=True, help="endings of the files")
    parser.add_argument(
        "--train", metavar="PREFIX", required=True, help="file without .LANGUAGE, a sentence a line"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the random order (default 1)")
    parser.add_argument("--output", metavar="FOLDER", type=Path, required=True)


def run(args: Namespace) -> None:
    """Write FOLDER/PAIR.LANGUAGE for every two languages, each with an equal share of the lines."""
    check_languages(args.languages, least=2)
    texts = list(aligned(*(Path(f"{args.train}.{language}") for language in args.languages)))
    random.Random(args.seed).shuffle(texts)
    pairs = list(itertools.combinations(range(len(args.languages)), 2))
    for place, sides in enumerate(pairs):
        name = "-".join(args.languages[side] for side in sides)
        for side in sides:
            path = args.output / f"{name}.{args.languages[side]}"
            count = write_lines(path, (lines[side] for lines in texts[place :: len(pairs)]))
        print(f"{name}: {count:,} lines")
