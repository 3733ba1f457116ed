#!/usr/bin/env python3
"""Scores of one run, as the experiments store them: RUN/scores, a file each.

    python examples/score.py text bleu chrf --hyp FILE --ref FILE --where set=val --into RUN/scores
    python examples/score.py likelihood perplexity --hyp FILE --ref FILE --into RUN/scores
    python examples/score.py cost --checkpoint FILE --data FOLDER --pairs de-en --into RUN/scores

FILE of --hyp is what fairseq-generate or fairseq-interactive printed, or plain text with a line for
each one of the references.
"""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from experiments import UsageError, costs, metrics
from experiments.scores import Score, fields, write_score

from fairseq_ext.tools.evaluate.inputs import read_hypotheses, read_lines

USED = "parameters used"


def text(args: Namespace) -> None:
    """Score lines against lines of references."""
    references = read_lines(args.ref)
    hypotheses = read_hypotheses(args.hyp, references, args.ref)
    store(args, hypotheses, references)


def likelihood(args: Namespace) -> None:
    """Score what fairseq-generate --score-reference or fairseq-eval-lm printed."""
    references = read_lines(args.ref)
    store(args, costs.likelihoods(Path(args.hyp), len(references)), references)


def store(args: Namespace, hypotheses: list[str], references: list[str]) -> None:
    """Write the scores of all metrics of the command line."""
    for name in args.metrics:
        metric = metrics.metric_named(name)
        sums = metric.statistics(hypotheses, references)
        score = Score(
            metric.title,
            metric.score(sums.sum(axis=0)),
            fields(args.where),
            name,
            sums.tolist(),
            metric.signature(),
        )
        write_score(args.into, score)


def cost(args: Namespace) -> None:
    """Count parameters, updates and time."""
    values = costs.timed(args.log) if args.log else {}
    if args.checkpoint:
        counted = costs.parameters(args.checkpoint, args.data, args.pairs)
        values.update({args.used if name == USED else name: n for name, n in counted.items()})
    for name, value in values.items():
        write_score(args.into, Score(name, value, fields(args.where)))


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
    command = commands.add_parser("cost", help=cost.__doc__)
    command.set_defaults(function=cost)
    command.add_argument(
        "--checkpoint", metavar="FILE", nargs="+", type=Path, help="models that are used together"
    )
    command.add_argument("--data", metavar="FOLDER", type=Path, help="binarised data of them")
    command.add_argument(
        "--pairs", metavar="PAIR", nargs="+", default=[], help="directions that are translated"
    )
    command.add_argument(
        "--used",
        metavar="NAME",
        default=USED,
        help="what to call the parameters that a translation of --pairs depends on",
    )
    command.add_argument(
        "--log", metavar="FILE", nargs="+", type=Path, help="logs of fairseq-train"
    )
    for command in commands.choices.values():
        command.add_argument(
            "--where", metavar="FIELD=VALUE", nargs="+", default=[], help="what was scored"
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
