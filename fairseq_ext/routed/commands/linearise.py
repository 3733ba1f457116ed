"""`fairseq-ext linearise`: annotated corpora as parallel text, and predictions back.

fairseq-ext linearise ner eng.train.gz --output train        (train.src, train.tgt)
fairseq-ext linearise ner test.src predictions --inverse --output predictions.conll
"""

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterable, List, Sequence, Tuple, Union

from ...compat.user_errors import option_of
from ...tools import UsageError, check_apart, check_new, write_texts

FORMATS = ("ner", "tree", "amr")
# option: (its format, whether the inverse reads it as well)
OPTIONS = {
    "scheme": ("ner", True),
    "leaves": ("tree", True),
    "function_tags": ("tree", False),
    "senses": ("amr", False),
}
SHOWN = 10  # problems that are printed

PathName = Union[str, Path]
Outcome = Tuple[Dict[str, int], List[str]]  # numbers of items; what was wrong with some


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "format",
        metavar="FORMAT",
        choices=FORMATS,
        help="format of the corpus: ner (columns of CoNLL-2003), tree (Penn Treebank .mrg) or amr "
        "(PENMAN graphs)",
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="input files, plain, .gz or .zip (for trees: the .mrg files in it); with --inverse "
        "two files, sentences and linearised targets",
    )
    parser.add_argument(
        "--output",
        required=True,
        metavar="PREFIX",
        help="write PREFIX.src and PREFIX.tgt; with --inverse write the one file PREFIX",
    )
    parser.add_argument(
        "--inverse", action="store_true", help="convert lines back to the format of the corpus"
    )
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    parser.add_argument(
        "--skip-bad",
        action="store_true",
        help="skip malformed sentences, trees and graphs, and count them",
    )
    parser.add_argument(
        "--scheme",
        choices=("iob2", "iob1", "keep"),
        help="for ner: scheme of the written tags, which shows where entities begin; keep leaves "
        "it as in the input (default: iob2; with --inverse keep)",
    )
    parser.add_argument(
        "--leaves",
        choices=("tag", "xx", "word"),
        help="for tree: what replaces the words: their parts of speech, XX, or the words "
        "themselves (default: tag)",
    )
    parser.add_argument(
        "--function-tags",
        action="store_true",
        default=None,
        help="for tree: keep function tags such as -SBJ and -TMP",
    )
    parser.add_argument(
        "--senses",
        action="store_true",
        default=None,
        help="for amr: keep the senses of predicates, such as -01",
    )


def options_of(args: Namespace) -> Dict[str, Any]:
    """Return the options of the format. Raises UsageError for those of another one."""
    options = {name: getattr(args, name) for name in OPTIONS if getattr(args, name) is not None}
    for name in options:
        option, (format_name, inverse) = option_of(name), OPTIONS[name]
        if format_name != args.format:
            raise UsageError(f"{option} is of {format_name}, FORMAT is {args.format}")
        if args.inverse and not inverse:
            raise UsageError(f"{option} does not go with --inverse")
    return options


def _all_well_formed(results: Iterable[Any], skip_bad: bool, files: str) -> Tuple[Any, Outcome]:
    """Return the list of items without the faulty ones, and what became of all.

    Raises ValueError for the first faulty item unless ``skip_bad``, and when no item is left.
    """
    from ..linearise import well_formed

    counts: Dict[str, int] = Counter(written=0, skipped=0)
    problems: List[str] = []
    # all before the first is written: a faulty item leaves no half of a corpus
    items = list(well_formed(results, skip_bad, counts, problems))
    if not items:
        raise ValueError(f"{files}: no sentence is left")
    return items, (counts, problems)


def linearise(
    name: str, paths: Sequence[PathName], prefix: PathName, skip_bad: bool = False, **options: Any
) -> Outcome:
    """Write PREFIX.src and PREFIX.tgt, both or neither.

    Returns:
        ({"written": items, "skipped": items}, what was wrong with each that was skipped).

    Raises:
        ValueError: naming file and line, for the first faulty item unless ``skip_bad``; when no
            item is left.
    """
    from ..linearise import pairs

    results, files = pairs(name, paths, **options), ", ".join(map(str, paths))
    line_pairs, outcome = _all_well_formed(results, skip_bad, files)
    write_texts(
        {
            f"{prefix}.{side}": [pair[place] + "\n" for pair in line_pairs]
            for place, side in enumerate(("src", "tgt"))
        }
    )
    return outcome


def restore(
    name: str,
    sources: PathName,
    targets: PathName,
    output: PathName,
    skip_bad: bool = False,
    **options: Any,
) -> Outcome:
    """Write the file ``output`` in the format of the corpus; returns and raises as ``linearise``.

    sources, targets: files of sentences and of (predicted) linearised targets, line by line.
    """
    from ..linearise import items

    results = items(name, sources, targets, **options)
    corpus_items, outcome = _all_well_formed(results, skip_bad, f"{sources}, {targets}")
    # blank lines part sentences of rows; trees and graphs end with what parts them
    gap = "\n" if name == "ner" else ""
    write_texts({output: [gap.join(corpus_items)]})
    return outcome


def convert_corpora(args: Namespace) -> int:
    """Write the files; print how many sentences were written and skipped, and why."""
    options = options_of(args)
    if args.inverse and len(args.files) != 2:
        raise UsageError(
            f"--inverse: {len(args.files)} FILEs; allowed: two, sentences and linearised targets"
        )
    for ending in [""] if args.inverse else [".src", ".tgt"]:
        check_apart(f"{args.output}{ending}", args.files)
        check_new(f"{args.output}{ending}", args.force)
    try:
        if args.inverse:
            sources, targets = args.files
            counts, problems = restore(
                args.format, sources, targets, args.output, args.skip_bad, **options
            )
        else:
            counts, problems = linearise(
                args.format, args.files, args.output, args.skip_bad, **options
            )
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
