"""Divide tab-separated sentence pairs, such as Tatoeba's, into the text of the three sets.

Sentences repeat there: a sentence stands beside each of its translations. Pairs with a sentence in
common, directly or through other pairs, are a group. The first pair of each group is used and the
others are left out, so that no sentence is in two pairs, let alone in two parts. Training has no
sentence of the other parts in other code points, white space or invisible characters either.
"""

import random
import zipfile
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Iterable, Iterator, Sequence

from fairseq_ext.compat.text_lines import UNREADABLE, UnreadableText, decoded, lines_of
from fairseq_ext.tools import UsageError

from .files import check_languages, check_outputs, find, normalised, write_lines

SEED = 1


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--file", metavar="FILE", type=Path, required=True,
        help="one pair a line, further columns ignored; plain, .gz, or a .zip whose first file "
        "it is",
    )  # fmt: skip
    parser.add_argument("--languages", nargs=2, required=True, help="of the first two columns")
    parser.add_argument("--valid", metavar="N", type=int, default=1000, help="pairs (default 1000)")
    parser.add_argument("--test", metavar="N", type=int, default=1000, help="pairs (default 1000)")
    parser.add_argument("--output", metavar="FOLDER", type=Path, required=True)


def raw_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a plain or .gz file, or of the first file of a .zip.

    Raises UsageError where the file cannot be read.
    """
    try:
        if path.suffix != ".zip":
            yield from lines_of(path)
            return
        with zipfile.ZipFile(path) as archive:
            # names of folders end in a slash
            files = [name for name in archive.namelist() if not name.endswith("/")]
            if not files:
                raise UsageError(f"{path}: there is no file in it")
            with archive.open(files[0]) as stream:
                yield from decoded(stream, path)
    except UnreadableText as error:
        raise UsageError(str(error)) from error
    except UNREADABLE as error:
        raise UsageError(f"cannot read {path}: {error}") from error


def sentence_pairs(lines: Iterable[str], path: Path) -> Iterator[tuple[str, str]]:
    """Yield the first two columns, without white space around them, where both have text.

    A carriage return within a text becomes a blank, since fairseq would begin another line there.
    Raises UsageError with file and line number where there is no second column.
    """
    for number, line in enumerate(lines, 1):
        columns = [column.replace("\r", " ").strip() for column in line.split("\t")]
        if len(columns) < 2:
            text = line.strip()[:50]
            raise UsageError(f"{path}, line {number}: {text!r} has no tab between two texts")
        if columns[0] and columns[1]:
            yield columns[0], columns[1]


def one_of_each_group(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the first pair of each group of pairs that sentences in common connect."""
    parents: dict[tuple[int, str], tuple[int, str]] = {}

    def group(sentence: tuple[int, str]) -> tuple[int, str]:
        parents.setdefault(sentence, sentence)
        while parents[sentence] != sentence:
            parents[sentence] = parents[parents[sentence]]
            sentence = parents[sentence]
        return sentence

    ordered = list(pairs)
    for left, right in ordered:
        parents[group((1, right))] = group((0, left))
    first: dict[tuple[int, str], tuple[str, str]] = {}
    for left, right in ordered:
        first.setdefault(group((0, left)), (left, right))
    return list(first.values())


def unscored(
    train: Sequence[tuple[str, str]], scored: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return the training pairs without a sentence of those that are scored, however written."""
    sides = [{normalised(pair[side]) for pair in scored} for side in range(2)]
    return [
        pair
        for pair in train
        if not any(normalised(text) in texts for text, texts in zip(pair, sides))
    ]


def run(args: Namespace) -> None:
    """Write FOLDER/{train,valid,test}.LANGUAGE, in random order."""
    check_languages(args.languages)
    path = find(args.file)
    outputs = {
        split: [args.output / f"{split}.{language}" for language in args.languages]
        for split in ("valid", "test", "train")
    }
    check_outputs(sum(outputs.values(), []), [path])
    pairs = one_of_each_group(sentence_pairs(raw_lines(path), path))
    if args.valid < 1 or args.test < 1 or args.valid + args.test >= len(pairs):
        raise UsageError(
            f"--valid {args.valid} --test {args.test}: both must be positive and leave training "
            f"text; {path} has {len(pairs):,} pairs without a sentence in common"
        )
    random.Random(SEED).shuffle(pairs)
    end = args.valid + args.test
    train = unscored(pairs[end:], pairs[:end])
    if not train:
        raise UsageError(f"{path}: all pairs for training are of --valid or --test, written anew")
    splits = {"valid": pairs[: args.valid], "test": pairs[args.valid : end], "train": train}
    for split, chosen in splits.items():
        for side, output in enumerate(outputs[split]):
            write_lines(output, (pair[side] for pair in chosen))
        print(f"{split}: {len(chosen):,} pairs")
    left_out = len(pairs) - end - len(train)
    if left_out:
        print(f"left out of train: {left_out:,} pairs with a sentence of valid or test, written "
              "with other code points, white space or invisible characters")  # fmt: skip
