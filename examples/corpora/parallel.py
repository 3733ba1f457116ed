"""Plain copies of text that is aligned line by line, in two or more languages.

Training lines that are empty in some language teach nothing and are left out in all; what is to be
translated stays, whatever it is. Of training lines that are in the other sets too there is a
warning: a model is scored there on what it has learnt.
"""

import contextlib
import itertools
from argparse import ArgumentParser, Namespace
from pathlib import Path

from fairseq_ext.tools import AddValues, UsageError

from .files import (
    aligned,
    check_languages,
    check_outputs,
    find,
    lines_named,
    normalised,
    written,
)

SPLITS = ("train", "valid", "test")
# {lines of a training pair that is in other sets too: (its number, the sets)}
Seen = dict[tuple[str, ...], tuple[int, set[str]]]


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--languages", nargs="+", action=AddValues, required=True, help="endings of the files"
    )
    for split in SPLITS:
        parser.add_argument(
            f"--{split}", metavar="PREFIX", required=True, help="file without .LANGUAGE and .gz"
        )
    parser.add_argument(
        "--train-lines", type=int, metavar="N", help="use the first N lines of the training text"
    )
    parser.add_argument("--output", metavar="FOLDER", type=Path, required=True)


def copy(paths: list[Path], outputs: list[Path], is_training: bool, last: object) -> str:
    """Copy aligned lines; return what was done. Raises UsageError where nothing is left."""
    count, empty = 0, list[int]()
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(written(path)) for path in outputs]
        pairs = itertools.islice(aligned(*paths), last)  # type: ignore[call-overload]
        for number, lines in enumerate(pairs, start=1):
            # a translation has a word at least (--min-len): one of an empty line is wrong as well
            if not all(map(normalised, lines)):
                empty.append(number)
                if is_training:
                    continue
            count += 1
            for stream, line in zip(streams, lines):
                stream.write(line + "\n")
        if not count:
            raise UsageError(f"{' and '.join(map(str, paths))} have no line with text in all")
    done = f"{count:,} lines"
    if empty and is_training:
        done += f", {len(empty):,} with an empty side dropped ({lines_named(empty)})"
    elif empty:
        done += (
            f"\nwarning: {paths[0]}, {lines_named(empty)}: empty, or empty in another language: "
            "no translation of it can be right"
        )
    return done


def seen(train: list[Path], scored: dict[str, list[Path]], last: object) -> Seen:
    """Return the training pairs, all their lines, that are in sets to be scored too.

    train: files of the training text. scored: {set: its files}. last: training lines to read.
    """
    sets: dict[tuple[str, ...], set[str]] = {}
    for split, paths in scored.items():
        for lines in map(key, aligned(*paths)):
            if all(lines):
                sets.setdefault(lines, set()).add(split)
    shared: Seen = {}
    pairs = itertools.islice(aligned(*train), last)  # type: ignore[call-overload]
    for number, lines in enumerate(pairs, 1):
        if key(lines) in sets:
            shared.setdefault(key(lines), (number, sets[key(lines)]))
    return shared


def key(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return what equal pairs have in common."""
    return tuple(map(normalised, lines))


def run(args: Namespace) -> None:
    """Write FOLDER/{train,valid,test}.LANGUAGE."""
    check_languages(args.languages)
    if args.train_lines is not None and args.train_lines < 1:
        raise UsageError(f"--train-lines {args.train_lines}: allowed: 1 or more")
    inputs, outputs = {}, {}
    for split in SPLITS:
        prefix = getattr(args, split)
        inputs[split] = [find(f"{prefix}.{language}") for language in args.languages]
        outputs[split] = [args.output / f"{split}.{language}" for language in args.languages]
    # before anything is written: an output of one split may be an input of a later one
    check_outputs(sum(outputs.values(), []), sum(inputs.values(), []))
    for split in SPLITS:
        is_training = split == "train"
        last = args.train_lines if is_training else None
        print(f"{split}: {copy(inputs[split], outputs[split], is_training, last)}")
    train = inputs.pop("train")
    shared = seen(train, inputs, args.train_lines)
    for split, paths in inputs.items():
        numbers = [number for number, splits in shared.values() if split in splits]
        if numbers:
            print(
                f"warning: {train[0]}, line {numbers[0]}: the pair is in {paths[0]} too "
                f"({len(numbers):,} such pairs in all): scores count what was learnt by heart"
            )
