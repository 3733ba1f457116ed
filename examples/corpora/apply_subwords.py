"""Spell texts in the subwords of a model; the results have the same names in another folder.

warning: fairseq-train leaves lines out that are longer than its models read, and fairseq-generate
ends at one. A line whose characters the model normalises, or that has sentencepiece's sign for a
blank, is named as well: a reference with them never equals a translation.
"""

import itertools
import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, Iterator, Optional

from fairseq_ext.tools import UsageError
from fairseq_ext.tools.evaluate.inputs import join_subwords

from .files import check_outputs, lines_named, lines_of, outputs_in, write_lines

# fairseq's default --max-source-positions, of which the end symbol takes one
LONGEST = 1024 - 1
MARK = "\u2581"  # of a blank, in sentencepiece
Changes = list[tuple[int, str]]  # number of a line, and its first change


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("texts", metavar="TEXT", nargs="+", type=Path, help="a sentence a line")
    parser.add_argument("--model", metavar="FILE", type=Path, required=True)
    parser.add_argument("--output", metavar="FOLDER", type=Path, required=True)
    parser.add_argument(
        "--dropout",
        metavar="P",
        type=float,
        default=0.0,
        help="leave each merge of a BPE model out with this probability (Provilkov et al. 2020, "
        "BPE-Dropout): another spelling of the same sentences, for training",
    )
    parser.add_argument("--seed", type=int, help="of --dropout")


def run(args: Namespace) -> None:
    """Write FOLDER/TEXT for each text, with spaces between the pieces.

    Raises UsageError for what is no model, where two texts have one name, and for a probability
    that is none or has no seed.
    """
    import sentencepiece

    sampling = _sampling(args.dropout, args.seed)
    if sampling:
        sentencepiece.set_random_generator_seed(args.seed)
    outputs = outputs_in(args.output, args.texts)
    check_outputs(outputs, [*args.texts, args.model])
    try:
        model = sentencepiece.SentencePieceProcessor(model_file=str(args.model))
    except (OSError, RuntimeError) as error:
        raise UsageError(f"--model {args.model}: {error}") from error

    def spelled(
        text: Path, too_long: list[int], marked: list[int], changed: Changes
    ) -> Iterator[str]:
        for number, line in enumerate(lines_of(text), start=1):
            # fairseq cuts at any white space: a no-break space within a piece would be lost
            line = " ".join(line.split())
            pieces = model.encode(line, out_type=str, **sampling)
            if len(pieces) > LONGEST:
                too_long.append(number)
            joined = join_subwords(" ".join(pieces), "sentencepiece")
            if MARK in line:  # with any normalisation
                marked.append(number)
            elif joined != line:
                changed.append((number, change(line, joined)))
            yield " ".join(pieces)

    for source, output in zip(args.texts, outputs):
        too_long, marked, changed = list[int](), list[int](), Changes()
        write_lines(output, spelled(source, too_long, marked, changed))
        _warn(source, too_long, marked, changed)


def _warn(source: Path, too_long: list[int], marked: list[int], changed: Changes) -> None:
    """Print a warning for each kind of line that there is: numbers of lines of a text."""
    numbers = [number for number, _ in changed]
    scored = "and so have translations, which are scored as wrong where references have the first"
    warnings = [
        (
            too_long,
            f"more than {LONGEST:,} subwords; fairseq-train leaves them out, fairseq-generate ends "
            "with an error: shorten them, or name a larger --max-source-positions and "
            "--max-target-positions",
        ),
        (
            marked,
            "U+2581, which sentencepiece writes for a blank: it is lost, and translations do not "
            "have it; replace it by another character, in references too",
        ),
        (
            numbers,
            f"the subwords have other characters ({changed[0][1] if changed else ''}), {scored}; "
            "--normalisation identity of learn-subwords retains all characters",
        ),
    ]
    for lines, problem in warnings:
        if lines:
            print(f"warning: {source}, {lines_named(lines)}: {problem}", file=sys.stderr)


def change(before: str, after: str) -> str:
    """Return the code points in which two texts differ first, up to where their words are equal."""
    pairs = itertools.zip_longest(before.split(" "), after.split(" "), fillvalue="")
    first, second = next(words for words in pairs if words[0] != words[1])
    start = len(os.path.commonprefix([first, second]))
    first, second = first[start:], second[start:]
    end = len(os.path.commonprefix([first[::-1], second[::-1]]))
    return f"{code_points(first[: len(first) - end])} as {code_points(second[: len(second) - end])}"


def code_points(text: str) -> str:
    """Return the code points of the first characters of a text, such as U+0E33."""
    return " ".join(f"U+{ord(character):04X}" for character in text[:4]) or "nothing"


def _sampling(dropout: float, seed: Optional[int]) -> dict[str, Any]:
    """Return the arguments with which sentencepiece leaves merges out."""
    if not 0 <= dropout < 1:
        raise UsageError(f"--dropout {dropout}: allowed: at least 0 and less than 1")
    if bool(dropout) != (seed is not None):
        raise UsageError(f"--dropout {dropout} --seed {seed}: allowed: both, or neither")
    # of a BPE model alpha is the probability
    return {"enable_sampling": True, "alpha": dropout, "nbest_size": -1} if dropout else {}
