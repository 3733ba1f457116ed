"""Annotated corpora as parallel text: sentences, and their linearised entities, trees or graphs.

A split has a file of its own, or is a part of the whole corpus: of a treebank whole texts in their
order, 80% of the trees for training, 10% for validation and 10% for testing; of graphs, which have
identifiers, those that are in no other split.
"""

import re
from argparse import ArgumentParser, Namespace
from pathlib import Path

from fairseq_ext.routed import linearise
from fairseq_ext.routed.formats import LinePair, Malformed, graphs
from fairseq_ext.tools import UsageError

from .files import check_outputs, find, write_lines
from .parallel import SPLITS

IDENTIFIER = re.compile(r"^#.*::id (\S+)", re.MULTILINE)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("format", metavar="FORMAT", choices=list(linearise.FORMATS))
    for split in ("whole", *SPLITS):
        parser.add_argument(f"--{split}", metavar="FILE", type=Path, help="plain, .gz or .zip")
    parser.add_argument("--source", metavar="LANGUAGE", required=True, help="of the sentences")
    parser.add_argument(
        "--longest", metavar="N", type=int, help="leave out training targets of more symbols"
    )
    parser.add_argument("--valid-lines", metavar="N", type=int, help="validate with the first N")
    parser.add_argument("--output", metavar="FOLDER", type=Path, required=True)


def texts_of(name: str, path: Path) -> list[list[LinePair]]:
    """Return [(sentence, target)] of each text of a file. Raises UsageError with file and line."""
    texts = []
    try:
        for text_name, lines in linearise.texts(path, linearise.MEMBERS[name]):
            pairs = []
            for pair in linearise.text_pairs(name, text_name, lines):
                if isinstance(pair, Malformed):
                    raise pair
                pairs.append(pair)
            texts.append(pairs)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return texts


def shares(texts: list[list[LinePair]]) -> dict[str, list[LinePair]]:
    """Return {split: pairs}: whole texts, about 80%, 10% and 10% of all pairs."""
    splits: dict[str, list[LinePair]] = {split: [] for split in SPLITS}
    total, before = sum(map(len, texts)), 0
    for pairs in texts:
        place = 10 * before
        split = "train" if place < 8 * total else "valid" if place < 9 * total else "test"
        splits[split] += pairs
        before += len(pairs)
    return splits


def identified(path: Path) -> list[tuple[str, LinePair]]:
    """Return [(identifier, (sentence, target))] of the graphs of a file."""
    pairs = []
    texts_of("amr", path)  # names what is malformed
    for _, lines in linearise.texts(path):
        for _, text in graphs.blocks(lines):
            pair, name = graphs.forward(text), IDENTIFIER.search(text)
            if pair and not name:
                raise UsageError(f"{path}: no line '# ::id NAME' above the graph of: {pair[0]}")
            if pair and name:
                pairs.append((name.group(1), pair))
    return pairs


def files_of(args: Namespace) -> dict[str, Path]:
    """Return {"whole" or split: file} of what the options name."""
    named = {name: getattr(args, name) for name in ("whole", *SPLITS)}
    return {name: find(path) for name, path in named.items() if path}


def examples(args: Namespace) -> dict[str, list[LinePair]]:
    """Return {split: [(sentence, target)]}."""
    paths = files_of(args)
    options = " ".join(f"--{name}" for name in paths)
    whole, missing = paths.pop("whole", None), [split for split in SPLITS if split not in paths]
    if whole and not paths:
        return shares(texts_of(args.format, whole))
    if not whole and not missing:
        return {split: sum(texts_of(args.format, paths[split]), []) for split in SPLITS}
    if whole and len(missing) == 1 and args.format == "amr":
        by_split = {split: identified(path) for split, path in paths.items()}
        taken = {name for graphs_of in by_split.values() for name, _ in graphs_of}
        by_split[missing[0]] = [named for named in identified(whole) if named[0] not in taken]
        return {split: [pair for _, pair in by_split[split]] for split in by_split}
    raise UsageError(
        f"{args.format} with {options or 'no file'}; allowed: "
        "--whole alone; --train, --valid and --test; for amr --whole and two of these"
    )


def run(args: Namespace) -> None:
    """Write FOLDER/{train,valid,test}.LANGUAGE and the targets as .FORMAT beside them."""
    if args.source == args.format:
        raise UsageError(f"--source {args.source}: the ending of the targets; allowed: another one")
    for option in ("longest", "valid_lines"):
        value = getattr(args, option)
        if value is not None and value < 1:
            raise UsageError(f"--{option.replace('_', '-')} {value}: allowed: 1 or more")
    languages = (args.source, args.format)
    outputs = [args.output / f"{split}.{language}" for split in SPLITS for language in languages]
    check_outputs(outputs, list(files_of(args).values()))
    splits = examples(args)
    if args.longest:
        short = [pair for pair in splits["train"] if len(pair[1].split()) <= args.longest]
        print(f"train: {len(splits['train']) - len(short):,} longer targets left out")
        splits["train"] = short
    splits["valid"] = splits["valid"][: args.valid_lines]
    for split in SPLITS:
        if not splits[split]:
            files = " ".join(map(str, files_of(args).values()))
            longest = f" of at most --longest {args.longest} symbols" if args.longest else ""
            raise UsageError(f"{files}: no sentence{longest} is left for {split}")
    for split in SPLITS:
        for place, language in enumerate(languages):
            lines = (pair[place] for pair in splits[split])
            write_lines(args.output / f"{split}.{language}", lines)
        print(f"{split}: {len(splits[split]):,} sentences")
