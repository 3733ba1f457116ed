"""Draw lines of aligned texts at random, the same lines of each; fewer are a part of more."""

import random
from argparse import ArgumentParser, Namespace
from pathlib import Path

from fairseq_ext.tools import UsageError

from .files import aligned, check_outputs, outputs_in, write_lines

SEED = 1


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("texts", metavar="TEXT", nargs="+", type=Path)
    parser.add_argument("--lines", metavar="N", type=int, required=True)
    parser.add_argument("--output", metavar="FOLDER", type=Path, required=True)


def run(args: Namespace) -> None:
    """Write FOLDER/TEXT for each text, the lines in the order of the text."""
    outputs = outputs_in(args.output, args.texts)
    check_outputs(outputs, args.texts)
    lines = list(aligned(*args.texts))
    if not 0 < args.lines <= len(lines):
        raise UsageError(f"--lines {args.lines}: {args.texts[0]} has {len(lines)}")
    order = list(range(len(lines)))
    random.Random(SEED).shuffle(order)
    chosen = sorted(order[: args.lines])
    for place, output in enumerate(outputs):
        write_lines(output, (lines[number][place] for number in chosen))
