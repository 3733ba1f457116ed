"""Learn a subword model: BPE of sentencepiece on NFKC-normalised text, spaces are part of pieces.

fairseq's `--bpe sentencepiece` undoes the pieces, so that translations come out as plain text. They
are normalised as well: NFKC makes full-width punctuation of Chinese ASCII, and writes letters of
Thai, Lao, Bengali and Hindi, and accents in NFD, with other code points.
"""

import io
import random
import re
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Iterator, Sequence

from fairseq_ext.tools import UsageError, atomic_path, check_once, make_folder

from .files import check_outputs, lines_of

SEED = 1
LONGEST = 1 << 20  # bytes; sentencepiece reads no longer line, and by default none of 4,193
NORMALISATIONS = ("nfkc", "identity")
# what sentencepiece says of a size, in words that name its own options, and what is meant
SIZES = {
    r"smaller than required_chars\. \d+ vs (\d+)": "at least {}, since each character is a subword",
    r"too high.* <= (\d+)": "at most {}, which is all that can be made of the text",
}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("texts", metavar="TEXT", nargs="+", type=Path, help="a sentence a line")
    parser.add_argument("--vocabulary", type=int, required=True, help="number of subwords")
    parser.add_argument("--lines", type=int, default=0, help="draw so many lines; 0 = all")
    parser.add_argument(
        "--normalisation",
        choices=NORMALISATIONS,
        default="nfkc",
        help="of the characters, in translations too; identity = none (default: nfkc)",
    )
    parser.add_argument("--model", metavar="FILE", type=Path, required=True)


def sample(paths: Sequence[Path], count: int) -> Iterator[str]:
    """Return the lines of all `paths` one after the other, or `count` of them drawn at random."""
    # as apply-subwords has them: any white space is a blank
    lines = (" ".join(line.split()) for path in paths for line in lines_of(path))
    if not count:
        return lines
    # reservoir sampling: one pass, `count` lines in memory
    rng, reservoir = random.Random(SEED), list[str]()
    for seen, line in enumerate(lines):
        if seen < count:
            reservoir.append(line)
        else:
            place = rng.randint(0, seen)
            if place < count:
                reservoir[place] = line
    return iter(reservoir)


def run(args: Namespace) -> None:
    """Write the model file. Raises UsageError for a text that is named twice or too small."""
    import sentencepiece

    if args.vocabulary < 1:
        raise UsageError(f"--vocabulary {args.vocabulary}: allowed: 1 or more")
    if args.lines < 0:
        raise UsageError(f"--lines {args.lines}: allowed: 0 or more")
    check_once("TEXT", args.texts)
    check_outputs([args.model], args.texts, "--model")
    learnt = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=sample(args.texts, args.lines),
            model_writer=learnt,
            vocab_size=args.vocabulary,
            model_type="bpe",
            character_coverage=1.0,
            normalization_rule_name=args.normalisation,
            max_sentence_length=LONGEST,
            minloglevel=2,
        )
    except RuntimeError as error:
        texts = ", ".join(path.name for path in args.texts)
        problem = f"--vocabulary {args.vocabulary} does not fit {texts}: {_reason(str(error))}"
        raise UsageError(problem) from error
    make_folder(args.model.parent)
    with atomic_path(args.model) as temporary:
        temporary.write_bytes(learnt.getvalue())


def _reason(message: str) -> str:
    """Return what is allowed where sentencepiece refuses a size, or its message as it is."""
    for pattern, allowed in SIZES.items():
        match = re.search(pattern, message)
        if match:
            return "allowed: " + allowed.format(match[1])
    return "there is no line with text" if "sentences_.empty()" in message else message
