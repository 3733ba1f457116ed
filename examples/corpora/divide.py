"""Divide text in several languages among their pairs, so that no sentence is in two pairs.

Line N is the same sentence in all languages. The lines of a pair come in random order, so that the
first so many of them are a random part.
"""

import itertools
import random
from argparse import ArgumentParser, Namespace
from pathlib import Path

from fairseq_ext.tools import AddValues, UsageError

from .files import aligned, check_languages, check_outputs, write_lines


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--languages", nargs="+", action=AddValues, required=True, help="endings of the files"
    )
    parser.add_argument(
        "--train", metavar="PREFIX", required=True, help="file without .LANGUAGE, a sentence a line"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the random order (default 1)")
    parser.add_argument("--output", metavar="FOLDER", type=Path, required=True)


def run(args: Namespace) -> None:
    """Write FOLDER/PAIR.LANGUAGE for every two languages, each with an equal share of the lines."""
    check_languages(args.languages, least=2)
    pairs = {
        "-".join(args.languages[side] for side in sides): sides
        for sides in itertools.combinations(range(len(args.languages)), 2)
    }
    inputs = [Path(f"{args.train}.{language}") for language in args.languages]
    outputs = {
        name: {side: args.output / f"{name}.{args.languages[side]}" for side in sides}
        for name, sides in pairs.items()
    }
    check_outputs([path for paths in outputs.values() for path in paths.values()], inputs)
    texts = list(aligned(*inputs))
    if len(texts) < len(pairs):
        raise UsageError(f"--train {args.train}: {len(texts)} lines; allowed: one for each pair")
    random.Random(args.seed).shuffle(texts)
    for place, (name, paths) in enumerate(outputs.items()):
        for side, path in paths.items():
            count = write_lines(path, (lines[side] for lines in texts[place :: len(pairs)]))
        print(f"{name}: {count:,} lines")
