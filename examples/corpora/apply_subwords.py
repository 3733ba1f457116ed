"""Spell texts in the subwords of a model; the results have the same names in another folder."""

import itertools
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Iterator

from .files import lines_of, write_lines
from .subwords import KINDS, SubwordModel

CHUNK = 10000


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("texts", metavar="TEXT", nargs="+", type=Path, help="a sentence a line")
    parser.add_argument("--kind", choices=sorted(KINDS), default="sentencepiece")
    parser.add_argument("--model", metavar="FILE", type=Path, required=True)
    parser.add_argument("--output", metavar="FOLDER", type=Path, required=True)


def spelled(model: SubwordModel, source: Path) -> Iterator[str]:
    """Yield the lines of a text in subwords."""
    lines = lines_of(source)
    while chunk := list(itertools.islice(lines, CHUNK)):
        yield from model.encode(chunk)


def run(args: Namespace) -> None:
    """Write FOLDER/TEXT for each text."""
    model = KINDS[args.kind](args.model)
    for source in args.texts:
        write_lines(args.output / source.name, spelled(model, source))
