"""Learn a subword model from lines of text."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from .subwords import KINDS


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("texts", metavar="TEXT", nargs="+", type=Path, help="a sentence a line")
    parser.add_argument("--vocabulary", type=int, required=True, help="number of subwords")
    parser.add_argument("--lines", type=int, default=0, help="draw so many lines; 0 = all")
    parser.add_argument("--kind", choices=sorted(KINDS), default="sentencepiece")
    parser.add_argument("--model", metavar="FILE", type=Path, required=True)


def run(args: Namespace) -> None:
    """Write the model file."""
    KINDS[args.kind].learn(args.texts, args.vocabulary, args.lines, args.model)
