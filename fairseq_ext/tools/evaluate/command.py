"""`fairseq-ext evaluate`: scores of translations against raw references, and their significance.

Each --hyp names the runs (seeds) of one system: plain text, one sentence a line, or what
fairseq-generate printed. Scores are sacrebleu's, and COMET's where it is asked for.
"""

import json
import sys
from argparse import ArgumentParser, Namespace
from itertools import chain
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence

from .. import AddValues, UsageError, atomic_path, check_apart, check_once
from . import inputs
from .intervals import interval_of_difference, pooled
from .report import Result, markdown, spread, tab_separated
from .scores import (
    BLEU_NAMES,
    METRICS,
    TESTS,
    Comet,
    Metric,
    Scored,
    Scorer,
    paired_test,
    resample,
    warnings_of_blanks,
)
from .scores import signature_of_test as signature

WRITERS = {
    ".md": markdown,
    ".tsv": tab_separated,
    ".json": lambda result: json.dumps(result, indent=1) + "\n",
}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of `fairseq-ext evaluate`."""
    parser.add_argument(
        "--hyp",
        nargs="+",
        action="append",
        required=True,
        metavar="FILE",
        help="files of translations: the runs of one system; repeat the option for each system",
    )
    parser.add_argument("--ref", required=True, metavar="FILE", help="file of raw references")
    parser.add_argument(
        "--baseline",
        nargs="+",
        action=AddValues,
        metavar="FILE",
        help="files of the runs that every system is compared with",
    )
    parser.add_argument(
        "--label",
        nargs="+",
        action=AddValues,
        metavar="NAME",
        help="name of each --hyp (default: its first file)",
    )
    parser.add_argument(
        "--metric",
        nargs="+",
        action=AddValues,
        choices=list(METRICS),
        default=["bleu", "chrf", "ter"],
        help="metrics (default: bleu chrf ter)",
    )
    parser.add_argument(
        "--tokenize", metavar="NAME", help="tokeniser of sacrebleu's BLEU, such as zh"
    )
    parser.add_argument("--comet", metavar="MODEL", help="compute COMET as well; needs --source")
    parser.add_argument("--source", metavar="FILE", help="file of source sentences")
    parser.add_argument(
        "--test",
        choices=list(TESTS),
        default="bootstrap",
        help="significance test (default: bootstrap)",
    )
    parser.add_argument(
        "--samples",
        type=int,
        metavar="N",
        help="of the test; default: " + ", ".join(f"{n} {name}" for name, n in TESTS.items()),
    )
    add_text_arguments(parser)
    parser.add_argument(
        "--output",
        nargs="+",
        action=AddValues,
        default=[],
        metavar="FILE",
        help=f"also write the tables; the ending chooses the format: {', '.join(WRITERS)}",
    )


def add_text_arguments(parser: ArgumentParser) -> None:
    """Add the options of how translations become plain text."""
    parser.add_argument("--bpe", choices=inputs.BPES, help="join the subwords of the translations")
    parser.add_argument(
        "--tokenizer",
        choices=["moses"],
        help="then undo this tokenisation (needs sacremoses, --target-lang)",
    )
    parser.add_argument("--target-lang", metavar="LANG", help="language of --tokenizer")


def detokenizer(args: Namespace) -> Callable[[str], str]:
    """Return the function line -> detokenised line, from `add_text_arguments`."""
    if args.target_lang and not args.tokenizer:
        raise UsageError(f"--target-lang {args.target_lang} does nothing without --tokenizer")
    if not args.tokenizer:
        return lambda line: line
    if not args.target_lang:
        raise UsageError("--tokenizer moses needs --target-lang, such as de")
    return inputs.moses_detokenizer(args.target_lang)


def check(args: Namespace) -> None:
    """Raise UsageError for options that do not go together."""
    if args.label and len(args.label) != len(args.hyp):
        raise UsageError(f"--label: {len(args.label)} names for {len(args.hyp)} --hyp")
    # a single resample has no variance, and its interval no width
    least = 2 if args.test == "bootstrap" else 1
    if args.samples is not None and args.samples < least:
        raise UsageError(f"--samples {args.samples}: allowed: {least} and more")
    if args.comet and not args.source:
        raise UsageError(f"--comet {args.comet} needs --source")
    if args.source and not args.comet:
        raise UsageError(f"--source {args.source} does nothing without --comet")
    if args.test == "randomisation" and not args.baseline:
        raise UsageError("--test randomisation does nothing without --baseline")
    if args.tokenize and not set(BLEU_NAMES) & set(args.metric):
        raise UsageError(f"--tokenize {args.tokenize} does nothing without --metric bleu")
    # a run that counts twice makes the spread over runs too small
    for files in args.hyp:
        check_once("--hyp", files)
    check_once("--baseline", args.baseline or [])
    read = [args.ref, *chain(*args.hyp, args.baseline or [], [args.source] if args.source else [])]
    for path in args.output:
        if Path(path).suffix not in WRITERS:
            raise UsageError(f"--output {path}: the name must end in {', '.join(WRITERS)}")
        check_apart(path, read)
    if args.test == "randomisation" and args.baseline:
        for files in args.hyp:
            if len(files) != len(args.baseline):
                raise UsageError(
                    f"--test randomisation: {len(files)} runs in --hyp {files[0]} ... and "
                    f"{len(args.baseline)} in --baseline; there must be as many"
                )


def systems_of(args: Namespace) -> Dict[str, List[str]]:
    """Return {label: files}, the baseline first. Raises UsageError where two have the same name."""
    labels = args.label or [files[0] for files in args.hyp]
    # first: a row that others are compared with
    systems = {"baseline": args.baseline} if args.baseline else {}
    for label, files in zip(labels, args.hyp):
        if label in systems:
            raise UsageError(f"--label {label}: the name of two systems; give other ones")
        systems[label] = files
    return systems


def texts_of(files: Sequence[str], references: Sequence[str], args: Namespace) -> List[List[str]]:
    """Return the lines of each file as plain text; warn of what makes scores too low."""
    detokenize = detokenizer(args)
    texts: List[List[str]] = []
    for path in files:
        lines, bpe = inputs.read_hypotheses(path, references, args.ref), args.bpe
        joined = inputs.joined_lines(lines, bpe)
        if joined:
            bpe = None
            print(
                f"warning: {path}: {joined} of {len(lines)} lines hold blanks and no sub-words of "
                f"--bpe {args.bpe}: all lines stay as they are, as without the option",
                file=sys.stderr,
            )
        lines = [detokenize(inputs.join_subwords(line, bpe)) for line in lines]
        left = inputs.subwords_left(lines)
        if left and not joined:
            print(
                f"warning: {path}: {left} lines hold subwords; --bpe joins them "
                f"({', '.join(inputs.BPES)})",
                file=sys.stderr,
            )
        replaced = inputs.normalised_away(lines, references)
        if replaced:
            print(
                f"warning: {path}: {replaced} lines of {args.ref} hold characters that Unicode's "
                "NFKC replaces, and no translation does: sub-words that are learnt with nfkc "
                "cannot write them, and their words count as wrong",
                file=sys.stderr,
            )
        texts.append(lines)
    return texts


def metrics_of(args: Namespace, references: Sequence[str]) -> List[Scorer]:
    """Return the metrics that are asked for."""
    of_texts = [Metric(name, args.tokenize) for name in dict.fromkeys(args.metric)]
    for warning in warnings_of_blanks(of_texts, references, args.ref):
        print(warning, file=sys.stderr)
    metrics: List[Scorer] = [*of_texts]
    if args.comet:
        sources = inputs.read_lines(args.source)
        if len(sources) != len(references):
            raise UsageError(
                f"--source {args.source} has {len(sources)} lines and --ref {args.ref} "
                f"{len(references)}"
            )
        metrics.append(Comet(args.comet, sources))
    return metrics


def distinct_systems(texts: Dict[str, List[List[str]]]) -> List[str]:
    """Return the labels of the systems; of those with the same translations, one.

    texts: {label: the lines of each run}. The baseline may be a --hyp as well; counted twice, its
    runs would tell twice as much of how far seeds lie apart.
    """
    return list({tuple(sorted(map(tuple, runs))): label for label, runs in texts.items()}.values())


def evaluate(args: Namespace) -> Result:
    """Return scores and tests, as the .json file holds it."""
    references = inputs.read_lines(args.ref)
    if not references:
        raise UsageError(f"--ref {args.ref} holds no line")
    if len(references) < 2 and args.baseline:
        # every resample is the same: intervals would have no width, any difference be significant
        raise UsageError(f"--baseline: --ref {args.ref} has 1 line; allowed: 2 and more")
    systems = systems_of(args)
    texts = {label: texts_of(files, references, args) for label, files in systems.items()}
    number = args.samples or TESTS[args.test]
    # of the confidence intervals; a randomisation test has samples of its own
    of_intervals = number if args.test == "bootstrap" else TESTS["bootstrap"]
    # drawn once for all systems and metrics: differences are taken resample by resample
    resamples = resample(len(references), of_intervals)
    # all but the baseline
    tested = [label for label in systems if args.baseline and label != "baseline"]
    result: Dict[str, Any] = {
        "references": args.ref,
        "sentences": len(references),
        "files": systems,
        "metrics": {},
        "scores": {label: {} for label in systems},
        "baseline": "baseline" if args.baseline else None,
        "test": args.test,
        "samples": number,
        "tests": {label: {} for label in tested},
        "signatures": {},
    }
    for metric in metrics_of(args, references):
        scored = {}
        for label, runs in texts.items():
            # (N, K) of each run
            statistics = [metric.statistics(lines, references) for lines in runs]
            scored[label] = Scored(metric, statistics, resamples)
            values = scored[label].values
            of_label = {"runs": values, **spread(values)}
            if len(references) > 1:  # all resamples of a single sentence are alike
                of_label["interval"] = scored[label].interval()
            result["scores"][label][metric.name] = of_label
        seeds = pooled(scored[label] for label in distinct_systems(texts))
        for label in tested:
            both = scored["baseline"], scored[label]
            tests = paired_test(metric, *both, args.test, number)
            low, high = interval_of_difference(*both, seeds)
            tests[0].update(low=low, high=high)
            result["tests"][label][metric.name] = tests
        result["metrics"][metric.name] = metric.title
        result["signatures"][metric.title] = (
            signature(metric, args.test, number) if tested else metric.signature()
        )
    return result


def evaluate_translations(args: Namespace) -> int:
    """Print the tables, and write them where --output says."""
    check(args)
    result = evaluate(args)
    for path in args.output:
        with atomic_path(path) as temporary:
            temporary.write_text(WRITERS[Path(path).suffix](result), encoding="utf-8")
    print(markdown(result), end="")
    return 0
