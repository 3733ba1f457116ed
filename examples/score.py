#!/usr/bin/env python3
"""Scores of one run, as the experiments store them: RUN/scores, a file each.

    python examples/score.py text bleu chrf --hyp FILE --ref FILE --where set=val --into RUN/scores
    python examples/score.py likelihood perplexity --hyp FILE --ref FILE --into RUN/scores
    python examples/score.py cost --checkpoint FILE --data FOLDER --pairs de-en --into RUN/scores
    python examples/score.py curve ppl=perplexity --log FILE --by updates --into RUN/scores
    python examples/score.py best label --of RUN RUN --by HYP REF --take HYP REF --into RUN/scores

--tokenize zh=zh takes sacrebleu's tokeniser zh for the BLEU of references whose file ends in .zh.

FILE of --hyp is what fairseq-generate or fairseq-interactive printed, or plain text with a line for
each one of the references.
"""

import itertools
import math
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Optional, Sequence

from experiments import UsageError, logs, metrics
from experiments.parameters import parameters
from experiments.scores import Score, digest, fields, write_score

from fairseq_ext.tools import AddValues, check_once
from fairseq_ext.tools.evaluate.inputs import read_hypotheses, read_lines
from fairseq_ext.tools.evaluate.scores import Metric, warnings_of_blanks

USED = "parameters used"
# of these metrics less is better
LESS = ("ter", "cer", "wer", "error", "perplexity", "nats")
BEST = [
    name for name in metrics.NAMES if name not in LESS and not name.endswith(("_formed", "_length"))
]


def references_of(path: str, option: str = "--ref") -> list[str]:
    """Return the lines of references. Raises UsageError where there is none."""
    references = read_lines(path)
    if not references:
        raise UsageError(f"{option} {path} holds no line")
    return references


def text(args: Namespace) -> None:
    """Score lines against lines of references."""
    references = references_of(args.ref)
    hypotheses = read_hypotheses(args.hyp, references, args.ref)
    tokeniser = tokeniser_of(args.ref, args.tokenize)
    named = [metrics.metric_named(name, tokeniser) for name in args.metrics]
    of_texts = [metric for metric in named if isinstance(metric, Metric)]
    language = Path(args.ref).suffix[1:]
    for warning in warnings_of_blanks(of_texts, references, args.ref, language):
        print(f"{warning} (the variable METRICS)")
    store(args, hypotheses, references, tokeniser)


def tokeniser_of(path: str, by_language: Sequence[str]) -> Optional[str]:
    """Return the tokeniser of a file's language, which its name ends in; None where none is named.

    by_language: words LANGUAGE=TOKENISER.
    """
    return fields(by_language, "--tokenize", "LANGUAGE=TOKENISER").get(Path(path).suffix[1:])


def likelihood(args: Namespace) -> None:
    """Score what fairseq-generate --score-reference or fairseq-eval-lm printed."""
    references = references_of(args.ref)
    store(args, logs.likelihoods(Path(args.hyp), len(references)), references)


def store(
    args: Namespace,
    hypotheses: list[str],
    references: list[str],
    tokenize: Optional[str] = None,
) -> None:
    """Write the scores of all metrics of the command line; tokenize: of BLEU."""
    for name in args.metrics:
        metric = metrics.metric_named(name, tokenize)
        sums = metric.statistics(hypotheses, references)
        score = Score(
            metric.title,
            metric.score(sums.sum(axis=0)),
            fields(args.where),
            name,
            sums.tolist(),
            metric.signature(),
            digest(references),
        )
        write_score(args.into, score)


def cost(args: Namespace) -> None:
    """Count parameters, updates and time."""
    if not args.checkpoint and not args.log:
        raise UsageError("allowed: --checkpoint, --log, or both")
    if bool(args.checkpoint) != bool(args.data):
        raise UsageError("--checkpoint and --data: allowed: both, or neither")
    if args.pairs and not args.checkpoint:
        raise UsageError(f"--pairs {' '.join(args.pairs)}: does nothing without --checkpoint")
    if args.used != USED and not args.pairs:
        raise UsageError(f"--used {args.used}: does nothing without --pairs")
    check_once("--log", args.log or [])
    check_once("--checkpoint", args.checkpoint or [])
    values = logs.timed(args.log) if args.log else {}
    if args.checkpoint:
        counted = parameters(args.checkpoint, args.data, args.pairs)
        values.update({args.used if name == USED else name: n for name, n in counted.items()})
    for name, value in values.items():
        write_score(args.into, Score(name, value, fields(args.where)))


def places(points: Sequence[tuple[int, float]], unit: float, digits: int) -> list[str]:
    """Return the places of points on a curve, their updates divided by a unit, each another.

    A place that an earlier point has gets more digits: otherwise one value would replace the other.
    """
    texts: list[str] = []
    for updates, _ in points:
        precisions = (f"{updates / unit:.{more}f}" for more in itertools.count(digits))
        texts.append(next(text for text in precisions if text not in texts))
    return texts


def curve(args: Namespace) -> None:
    """Tell how a run learnt: what its log says of the validation set, at each or the last time."""
    if args.per < 1 or (args.per > 1 and args.by != "updates"):
        raise UsageError(f"--per {args.per}: allowed: 1 or more, with --by updates")
    unit = float(args.per)
    if args.by == "epoch":
        unit = logs.updates_per_epoch(args.log)
    named = [metric.partition("=") for metric in args.metrics]
    titles = [title or name for name, _, title in named]
    twice = next((title for title in titles if titles.count(title) > 1), None)
    if twice:
        raise UsageError(
            f"{' '.join(args.metrics)}: two are called {twice}; allowed: one of a name"
        )
    where = fields(args.where)
    if args.by in where:
        raise UsageError(f"--where {args.by}={where[args.by]}: it is what --by {args.by} tells")
    for (name, _, _), title in zip(named, titles):
        points = logs.curve(args.log, name)
        if not args.by:
            write_score(args.into, Score(title, points[-1][1], where))
            continue
        texts = places(points, unit, 1 if args.by == "epoch" else 0)
        for text, (_, value) in zip(texts, points):
            write_score(args.into, Score(title, value, {**where, args.by: text}))


def best(args: Namespace) -> None:
    """Score the run that is the best of several on other lines."""

    def lines(run: Path, option: str) -> tuple[list[str], list[str]]:
        hypothesis, reference = getattr(args, option)
        references = references_of(reference, f"--{option}")
        return read_hypotheses(run / hypothesis, references, reference), references

    def value(run: Path) -> float:
        metric = metrics.metric_named(args.metrics[0])
        score = metric.score(metric.statistics(*lines(run, "by")).sum(axis=0))
        # a run that diverged is no best one, which max() would take it for if it came first
        return -math.inf if math.isnan(score) else score

    store(args, *lines(max(args.of, key=value), "take"))


def add_cost(command: ArgumentParser) -> None:
    """Add the options of `cost`."""
    command.set_defaults(function=cost)
    command.add_argument(
        "--checkpoint",
        metavar="FILE",
        nargs="+",
        action=AddValues,
        type=Path,
        help="models that are used together",
    )
    command.add_argument("--data", metavar="FOLDER", type=Path, help="binarised data of them")
    command.add_argument(
        "--pairs",
        metavar="PAIR",
        nargs="+",
        action=AddValues,
        default=[],
        help="directions that are translated",
    )
    command.add_argument(
        "--used",
        metavar="NAME",
        default=USED,
        help="what to call the parameters that a translation of --pairs depends on",
    )
    command.add_argument(
        "--log",
        metavar="FILE",
        nargs="+",
        action=AddValues,
        type=Path,
        help="logs of fairseq-train",
    )


def arguments(words: list[str]) -> Namespace:
    """Return the arguments of the command line."""
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for function in (text, likelihood):
        command = commands.add_parser(function.__name__, help=function.__doc__)
        command.set_defaults(function=function)
        command.add_argument("metrics", nargs="+", choices=metrics.NAMES, help="what to compute")
        command.add_argument("--hyp", metavar="FILE", required=True, help="what was printed")
        command.add_argument("--ref", metavar="FILE", required=True, help="lines of references")
    commands.choices["text"].add_argument(
        "--tokenize",
        metavar="LANGUAGE=TOKENISER",
        nargs="+",
        action=AddValues,
        default=[],
        help="how sacrebleu cuts references whose file ends in .LANGUAGE, for BLEU; such as zh=zh",
    )
    add_cost(commands.add_parser("cost", help=cost.__doc__))
    command = commands.add_parser("curve", help=curve.__doc__)
    command.set_defaults(function=curve)
    command.add_argument("metrics", metavar="METRIC=TITLE", nargs="+", help="such as ppl")
    command.add_argument("--log", metavar="FILE", type=Path, required=True, help="of fairseq-train")
    command.add_argument("--by", choices=("epoch", "updates"), help="default: the last value alone")
    command.add_argument("--per", type=int, default=1, help="divide the updates by so many pairs")
    command = commands.add_parser("best", help=best.__doc__)
    command.set_defaults(function=best)
    command.add_argument("metrics", nargs=1, choices=BEST, help="more must be better")
    command.add_argument(
        "--of", metavar="RUN", nargs="+", action=AddValues, type=Path, required=True
    )
    for option, which in (("--by", "lines that choose"), ("--take", "lines that are scored")):
        command.add_argument(
            option, metavar=("HYP", "REF"), nargs=2, required=True, help=f"{which}: RUN/HYP, REF"
        )
    for command in commands.choices.values():
        command.add_argument(
            "--where",
            metavar="FIELD=VALUE",
            nargs="+",
            action=AddValues,
            default=[],
            help="what was scored",
        )
        command.add_argument("--into", metavar="FOLDER", type=Path, required=True)
    return parser.parse_args(words)


def main(words: list[str]) -> None:
    """Run a command; show a problem that the user can solve without a traceback."""
    args = arguments(words)
    try:
        args.function(args)
    except UsageError as error:
        sys.exit(f"score.py {args.command}: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
