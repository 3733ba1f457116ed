"""Spell texts in the subwords of a model; the results have the same names in another folder."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from .files import lines_of, write_lines


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("texts", metavar="TEXT", nargs="+", type=Path, help="a sentence a line")
    parser.add_argument("--model", metavar="FILE", type=Path, required=True)
    parser.add_argument("--output", metavar="FOLDER", type=Path, required=True)


def run(args: Namespace) -> None:
    """Write FOLDER/TEXT for each text, with spaces between the pieces."""
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_file=str(args.model))
    for source in args.texts:
        spelled = (" ".join(model.encode(line, out_type=str)) for line in lines_of(source))
        write_lines(args.output / source.name, spelled)
