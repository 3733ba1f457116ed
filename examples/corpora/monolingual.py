"""Copies text of one language without the lines that a model is to be scored on.

A line of the test set in the text would be a target that the model has been trained on, whichever
code points its characters have.
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from fairseq_ext.tools import AddValues, UsageError

from .files import check_outputs, find, lines_of, normalised, write_lines


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--text", metavar="FILE", required=True, help="lines of one language, plain or .gz"
    )
    parser.add_argument(
        "--without",
        metavar="FILE",
        nargs="+",
        action=AddValues,
        required=True,
        help="sets whose lines are left out",
    )
    parser.add_argument("--output", metavar="FILE", type=Path, required=True)


def run(args: Namespace) -> None:
    """Write the lines that are neither empty nor in a set. Raises UsageError if there is none."""
    check_outputs([args.output], [find(path) for path in (args.text, *args.without)])
    scored = {normalised(line) for path in args.without for line in lines_of(find(path))}
    lines = [line for line in lines_of(find(args.text)) if normalised(line)]
    allowed = [line for line in lines if normalised(line) not in scored]
    if not allowed:
        raise UsageError(f"--text {args.text} has no line that is not in --without")
    write_lines(args.output, allowed)
    left_out = len(lines) - len(allowed)
    print(f"{args.output}: {len(allowed):,} lines, {left_out:,} of a set to be scored left out")
