"""`fairseq-ext linearise`: annotated corpora as parallel text, and predictions back.

fairseq-ext linearise ner eng.train.gz --output train        (train.src, train.tgt)
fairseq-ext linearise ner test.src predictions --inverse --output predictions.conll
"""

import sys
from collections import Counter

from . import UsageError, atomic_path

FORMATS = ("ner", "tree", "amr")
# option: (its format, whether the inverse reads it as well)
OPTIONS = {
    "scheme": ("ner", True),
    "leaves": ("tree", True),
    "function_tags": ("tree", False),
    "senses": ("amr", False),
}
SHOWN = 10


def add_arguments(parser):
    parser.add_argument(
        "format",
        metavar="FORMAT",
        choices=FORMATS,
        help="ner: columns of CoNLL-2003; tree: Penn Treebank .mrg; amr: PENMAN graphs",
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="plain, .gz or .zip (of trees: its .mrg files); with --inverse two, sentences and "
        "linearised targets",
    )
    parser.add_argument(
        "--output",
        required=True,
        metavar="PREFIX",
        help="write PREFIX.src and PREFIX.tgt; with --inverse this one file",
    )
    parser.add_argument(
        "--inverse", action="store_true", help="from lines to the format of the corpus"
    )
    parser.add_argument(
        "--skip-bad",
        action="store_true",
        help="leave malformed sentences, trees and graphs out and count them",
    )
    parser.add_argument(
        "--scheme",
        choices=("iob2", "iob1", "keep"),
        help="ner: how the written tags show where entities begin; keep: as in the input "
        "(default: iob2; with --inverse keep)",
    )
    parser.add_argument(
        "--leaves",
        choices=("tag", "xx", "word"),
        help="tree: what stands for the words, their parts of speech, XX or they themselves "
        "(default: tag)",
    )
    parser.add_argument(
        "--function-tags",
        action="store_true",
        default=None,
        help="tree: keep -SBJ, -TMP and so on",
    )
    parser.add_argument(
        "--senses", action="store_true", default=None, help="amr: keep the -01 of predicates"
    )


def options_of(args):
    """The options of the format that were given. Raises UsageError for those of another one."""
    given = {name: getattr(args, name) for name in OPTIONS if getattr(args, name) is not None}
    for name in given:
        option, (format_name, inverse) = f"--{name.replace('_', '-')}", OPTIONS[name]
        if format_name != args.format:
            raise UsageError(f"{option} is of {format_name}, FORMAT is {args.format}")
        if args.inverse and not inverse:
            raise UsageError(f"{option} does not go with --inverse")
    return given


def _write(path, parts) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(parts)


def linearise(name: str, paths, prefix, skip_bad: bool = False, **options):
    """Write PREFIX.src and PREFIX.tgt, both or neither.

    Returns:
        ({"written": items, "skipped": items}, what was wrong with each that was skipped).

    Raises:
        ValueError: naming file and line, for the first faulty item unless ``skip_bad``; when no
            item is left.
    """
    from ..routed.linearise import good, pairs

    counts, problems = Counter(written=0, skipped=0), []
    found = list(good(pairs(name, paths, **options), skip_bad, counts, problems))
    if not found:
        raise ValueError(f"{', '.join(map(str, paths))}: no sentence is left")
    with atomic_path(f"{prefix}.src") as source, atomic_path(f"{prefix}.tgt") as target:
        for place, path in enumerate((source, target)):
            _write(path, [pair[place] + "\n" for pair in found])
    return counts, problems


def restore(name: str, sources, targets, output, skip_bad: bool = False, **options):
    """Write the file ``output`` in the format of the corpus; returns and raises as ``linearise``.

    sources, targets: files of sentences and of (predicted) linearised targets, line by line.
    """
    from ..routed.linearise import good, items

    counts, problems = Counter(written=0, skipped=0), []
    found = list(good(items(name, sources, targets, **options), skip_bad, counts, problems))
    if not found:
        raise ValueError(f"{sources}, {targets}: no sentence is left")
    gap = "\n" if name == "ner" else ""
    with atomic_path(output) as path:
        _write(path, [gap.join(found)])
    return counts, problems


def run(args):
    """Write; prints how many sentences were written and skipped, and why."""
    options = options_of(args)
    if args.inverse and len(args.files) != 2:
        raise UsageError(
            f"--inverse: {len(args.files)} FILEs; allowed: two, sentences and linearised targets"
        )
    try:
        make = restore if args.inverse else linearise
        inputs = args.files if args.inverse else [args.files]
        counts, problems = make(args.format, *inputs, args.output, args.skip_bad, **options)
    except ImportError as error:
        raise UsageError(f"{error}; install it: pip install nltk penman") from error
    except ValueError as error:
        raise UsageError(str(error)) from error
    for problem in problems[:SHOWN]:
        print(f"skipped: {problem}", file=sys.stderr)
    if len(problems) > SHOWN:
        print(f"skipped: and {len(problems) - SHOWN} more", file=sys.stderr)
    written = args.output if args.inverse else f"{args.output}.src, {args.output}.tgt"
    print(f"{written}: {counts['written']} written, {counts['skipped']} skipped")
    return 0
