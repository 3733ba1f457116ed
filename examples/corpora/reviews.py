"""Film reviews of the Large Movie Review Dataset (Maas et al., 2011) as tokens, with their labels.

A token is a run of letters and digits, with apostrophes inside, or one other sign; all in lower
case; the mark-up <br /> is dropped.
"""

import random
import re
import tarfile
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import NamedTuple

from fairseq_ext.compat.text_lines import UNREADABLE
from fairseq_ext.tools import UsageError

from .files import check_outputs, write_lines
from .parallel import SPLITS

MEMBER = re.compile(r"(?:.*/)?(train|test)/(neg|pos)/(\d+)_\d+\.txt")
TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)*|[^\w\s]|_")
BREAK = re.compile(r"<br\s*/?>")
SEED = 1


class Review(NamedTuple):
    """A review in tokens; reviews are sorted by label and number."""

    label: str
    number: int
    text: str


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("archive", metavar="ARCHIVE", type=Path, help="such as aclImdb_v1.tar.gz")
    parser.add_argument(
        "--valid", metavar="N", type=int, required=True, help="training reviews that validate"
    )
    parser.add_argument(
        "--words", metavar="N", type=int, default=0, help="use the first N tokens; 0 = all"
    )
    parser.add_argument("--output", metavar="FOLDER", type=Path, required=True)


def tokens(review: str, count: int) -> str:
    """Return the first `count` tokens of a review (0 = all), as one line."""
    words = TOKEN.findall(BREAK.sub(" ", review.lower()))
    return " ".join(words[: count or None])


def read_reviews(archive: Path, count: int) -> dict[str, list[Review]]:
    """Return {"train", "test": reviews}, each with its first `count` tokens.

    Raises UsageError for what is no such archive, and for a review without words, by its name.
    """
    splits: dict[str, list[Review]] = {"train": [], "test": []}
    try:
        with tarfile.open(archive) as members:
            for member in members:
                match, stream = MEMBER.fullmatch(member.name), members.extractfile(member)
                if not match or stream is None:
                    continue
                line = tokens(stream.read().decode("utf-8"), count)
                if not line:
                    raise UsageError(f"{archive}: {member.name} has no words")
                splits[match[1]].append(Review(match[2], int(match[3]), line))
            # tarfile stops at a mark of its own, before the checksum of what is packed
            while members.fileobj and members.fileobj.read(1 << 20):
                pass
    except UNREADABLE as error:
        raise UsageError(f"{archive}: {error}") from error
    for split, reviews in splits.items():
        if not reviews:
            raise UsageError(f"{archive}: it has no {split}/pos/*.txt and {split}/neg/*.txt")
    return {split: sorted(reviews) for split, reviews in splits.items()}


def run(args: Namespace) -> None:
    """Write FOLDER/{train,valid,test}.{text,label}, a review a line; valid is drawn at random."""
    if args.words < 0:
        raise UsageError(f"--words {args.words}: allowed: 0 or more")
    outputs = [args.output / f"{split}.{kind}" for split in SPLITS for kind in ("text", "label")]
    check_outputs(outputs, [args.archive])
    splits = read_reviews(args.archive, args.words)
    train = splits["train"]
    if not 0 < args.valid < len(train):
        raise UsageError(f"--valid {args.valid}: allowed: 1 to {len(train) - 1}")
    mixed = random.Random(SEED).sample(train, len(train))
    splits["valid"], splits["train"] = mixed[: args.valid], mixed[args.valid :]
    for split, reviews in splits.items():
        write_lines(args.output / f"{split}.label", (review.label for review in reviews))
        write_lines(args.output / f"{split}.text", (review.text for review in reviews))
        words = sum(len(review.text.split()) for review in reviews)
        print(f"{split}: {len(reviews):,} reviews, {words:,} words")
