"""Labelled texts in the forms in which corpora of text classification have them.

mr   mr.txt, a text a line in Latin-1, and mr.split.txt: number of the line from 0, train or test, 0
     or 1 (the repositories that follow Yao et al., 2019; texts of Pang and Lee)
tab  train.txt and test.txt of lines "label TAB text": R8, R52, 20NG, Ohsumed

They come in tokens and only become lower case. Texts without a word are left out.
"""

import random
from argparse import ArgumentParser, Namespace
from pathlib import Path

from fairseq_ext.tools import UsageError

from .files import check_outputs, find, lines_of, write_lines
from .parallel import SPLITS
from .tab_separated import raw_lines

# (text, label)
Texts = list[tuple[str, str]]


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("raw", metavar="RAW", type=Path, help="folder with the files")
    parser.add_argument("--form", choices=sorted(READERS), required=True)
    parser.add_argument(
        "--valid", metavar="N", type=int, default=10, help="a text of N validates (default 10)"
    )
    parser.add_argument("--seed", type=int, default=1, help="draws these texts (default 1)")
    parser.add_argument("--output", metavar="FOLDER", type=Path, required=True)


def lower(text: str) -> str:
    """Return the tokens in lower case, with single spaces."""
    return " ".join(text.lower().split())


def read_mr(text_path: Path, split_path: Path) -> dict[str, Texts]:
    """Return {"train", "test": texts}. Raises UsageError with the line of a wrong split.

    A line that names a text again is wrong too: it might be in training and test.
    """
    first: dict[int, int] = {}  # {text: its line}
    texts, splits = list(lines_of(text_path, "latin-1")), dict[str, Texts](train=[], test=[])
    for number, line in enumerate(lines_of(split_path), start=1):
        place, split, label = [*line.split("\t"), "", ""][:3]
        # isdigit() alone takes a superscript, which int() does not
        is_text = place.isascii() and place.isdigit() and int(place) < len(texts)
        if not is_text or split not in splits or label not in ("0", "1") or line.count("\t") != 2:
            raise UsageError(f"{split_path}, line {number}: not NUMBER train|test 0|1: {line!r}")
        if first.setdefault(int(place), number) < number:
            raise UsageError(
                f"{split_path}, line {number}: text {place} has a split already, in line "
                f"{first[int(place)]}"
            )
        splits[split].append((lower(texts[int(place)]), ("neg", "pos")[int(label)]))
    return splits


def read_tab(train_path: Path, test_path: Path) -> dict[str, Texts]:
    """Return {"train", "test": texts}. Raises UsageError with the line that has no label."""
    splits: dict[str, Texts] = {}
    for split, path in (("train", train_path), ("test", test_path)):
        splits[split] = []
        for number, line in enumerate(raw_lines(path), start=1):
            # with its white space: a line that begins with a tab has no label
            label, _, text = line.partition("\t")  # a label alone is that of an empty text
            label = label.strip()
            if not label or " " in label:
                raise UsageError(f"{path}, line {number}: not LABEL TAB TEXT: {line[:60]!r}")
            splits[split].append((lower(text), label))
    return splits


READERS = {"mr": read_mr, "tab": read_tab}
FILES = {"mr": ("mr.txt", "mr.split.txt"), "tab": ("train.txt", "test.txt")}


def run(args: Namespace) -> None:
    """Write FOLDER/{train,valid,test}.{text,label}, a text and its label a line."""
    if args.valid < 2:
        raise UsageError(f"--valid {args.valid}: allowed: 2 or more")
    inputs = [find(args.raw / name) for name in FILES[args.form]]
    check_outputs(
        [args.output / f"{split}.{kind}" for split in SPLITS for kind in ("text", "label")], inputs
    )
    splits = {
        split: [text for text in texts if text[0]]
        for split, texts in READERS[args.form](*inputs).items()
    }
    random.Random(args.seed).shuffle(splits["train"])
    size = max(1, len(splits["train"]) // args.valid)
    splits["valid"], splits["train"] = splits["train"][:size], splits["train"][size:]
    for split, texts in splits.items():
        if not texts:
            raise UsageError(f"{args.raw}: no {split} texts in the form {args.form}")
    for split, texts in splits.items():
        write_lines(args.output / f"{split}.text", (text for text, _ in texts))
        write_lines(args.output / f"{split}.label", (label for _, label in texts))
        print(f"{split}: {len(texts):,} texts")
