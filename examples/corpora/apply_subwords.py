"""Spell texts in the subwords of a model; the results have the same names in another folder.

warning: fairseq-train leaves lines out that are longer than its models read, and fairseq-generate
ends at one.
"""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Iterator

from fairseq_ext.tools import UsageError

from .files import check_outputs, lines_of, write_lines

# fairseq's default --max-source-positions, of which the end symbol takes one
LONGEST = 1024 - 1


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

    def spelled(text: Path, too_long: list[int]) -> Iterator[str]:
        for number, line in enumerate(lines_of(text), start=1):
            pieces = model.encode(line, out_type=str)
            if len(pieces) > LONGEST:
                too_long.append(number)
            yield " ".join(pieces)

    for source, output in zip(args.texts, outputs):
        too_long: list[int] = []
        write_lines(output, spelled(source, too_long))
        if too_long:
            others = f" and {len(too_long) - 1} more" if len(too_long) > 1 else ""
            print(
                f"warning: {source}, line {too_long[0]}{others}: more than {LONGEST:,} subwords; "
                "fairseq-train leaves them out, fairseq-generate ends with an error: shorten "
                "them, or name a larger --max-source-positions and --max-target-positions",
                file=sys.stderr,
            )
