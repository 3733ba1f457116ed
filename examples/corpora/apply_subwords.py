"""Spell texts in the subwords of a model; the results have the same names in another folder."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from fairseq_ext.tools import UsageError

from .files import check_outputs, lines_of, write_lines


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("texts", metavar="TEXT", nargs="+", type=Path, help="a sentence a line")
    parser.add_argument("--model", metavar="FILE", type=Path, required=True)
    parser.add_argument("--output", metavar="FOLDER", type=Path, required=True)


def run(args: Namespace) -> None:
    """Write FOLDER/TEXT for each text, with spaces between the pieces.

    Raises UsageError for what is no model, and where two texts have one name.
    """
    import sentencepiece

    outputs = [args.output / text.name for text in args.texts]
    check_outputs(outputs, [*args.texts, args.model])
    try:
        model = sentencepiece.SentencePieceProcessor(model_file=str(args.model))
    except (OSError, RuntimeError) as error:
        raise UsageError(f"--model {args.model}: {error}") from error
    for source, output in zip(args.texts, outputs):
        spelled = (" ".join(model.encode(line, out_type=str)) for line in lines_of(source))
        write_lines(output, spelled)
