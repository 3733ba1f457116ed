"""`fairseq-ext compare`: learning curves of several runs side by side, by update and by time.

Time is that of the log's stamps, or fairseq's `wall` where it has none, without the pauses of a
run that was resumed. The picture has a row for each metric: over updates, and over time.
"""

import math
import re
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, Iterator, List, Optional, Sequence

import numpy as np

from ...compat.validation import best_scores
from .. import UsageError, atomic_path
from ..evaluate.report import markdown_table
from .figures import legends_below, literal, new_figure, save, write_table
from .panels import Panel, add_log_arguments, curves_of, draw_panel, read_runs, select
from .training_log import Curves, LoggedRun, Point

METRICS = ("loss", "ppl", "bleu")
# de-en_loss and pt_BR-zh_Hans_loss, but not de-en_nll_loss
PAIR_LOSS = re.compile(r"[^-]+-[^-]+(?<!_nll)(?<!_backward)_loss")
# ends of the names of metrics of which less is better, those of training first
LOWER = (*best_scores.LOWER, "kl", "latency", "duality", "L_t")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of `fairseq-ext compare`."""
    add_log_arguments(parser, METRICS)
    parser.add_argument(
        "--pair",
        metavar="PAIR",
        help="for runs with several language pairs: compare the metrics of this pair, also with "
        "runs of one direction (default: what a run logs for all pairs together)",
    )


def hours_at(run: LoggedRun, updates: Sequence[float]) -> np.ndarray:
    """Return the hours of training up to each of these updates (U,), between stamped lines.

    Args:
        run: with ``times`` in seconds, at least one.
        updates: any numbers of updates; beyond the last line, its time is returned.
    """
    stamped, seconds = zip(*run.times)
    # straight between two stamped lines, 0 hours at 0 updates
    return np.interp(updates, [0, *stamped], [0, *seconds]) / 3600


def by_time(run: LoggedRun) -> LoggedRun:
    """Return the run with hours for updates. Raises UsageError where its log does not tell them."""
    if not run.times:
        raise UsageError(
            f"LOG of {run.label}: no line has a time stamp, and `wall` is missing or stands still, "
            "as it does in a resumed run; keep what fairseq-train prints"
        )
    curves: Curves = {}
    for key, points in run.curves.items():
        updates, values = zip(*points)
        curves[key] = list(zip(hours_at(run, updates).tolist(), values))
    return LoggedRun(run.label, curves)


def pairs_in(run: LoggedRun) -> List[str]:
    """Return the language pairs of which the run logs losses; none of one direction."""
    names = filter(PAIR_LOSS.fullmatch, run.metrics())
    return sorted({name.rpartition("_")[0] for name in names})


def of_pair(run: LoggedRun, pair: str) -> LoggedRun:
    """Return the run with PAIR_metric in the place of metric, as far as it measures pairs."""
    begin = f"{pair}_"
    of_the_pair = {
        (split, name[len(begin) :]): points
        for (split, name), points in run.curves.items()
        if name.startswith(begin)
    }
    # what is measured of each pair, BLEU of texts alone: without PAIR_metric it is of others
    totals = {
        name[len(other) + 1 :]
        for other in pairs_in(run)
        for name in run.metrics()
        if name.startswith(f"{other}_")
    }
    rest = {key: points for key, points in run.curves.items() if key[1] not in totals}
    return LoggedRun(run.label, {**rest, **of_the_pair}, run.times)


def check_pair(runs: Sequence[LoggedRun], pair: Optional[str]) -> None:
    """Raise UsageError where no log has the pair, or one of several pairs does not.

    Warn of a sum beside one direction.
    """
    several = {run.label: pairs_in(run) for run in runs}
    logged = sorted({name for pairs in several.values() for name in pairs})
    if pair and pair not in logged:
        raise UsageError(f"--pair {pair}: allowed: {', '.join(logged) or 'leave it out'}")
    for label, pairs in several.items():
        # its totals are those of other pairs
        if pair and pairs and pair not in pairs:
            raise UsageError(
                f"--pair {pair}: the log of {label} has {', '.join(pairs)} instead; allowed: a "
                "pair that all logs of several pairs have"
            )
    if not pair and logged and not all(several.values()):
        which = ", ".join(label for label, pairs in several.items() if pairs)
        print(
            f"{which}: the figures are of {', '.join(logged)} together, the other runs' of one "
            "direction; --pair takes one of them",
            file=sys.stderr,
        )


def is_lower_better(metric: str) -> bool:
    """True if less is better."""
    return metric.endswith(LOWER)


def splits_of(run: LoggedRun, metric: str) -> List[str]:
    """Return the validation subsets with the metric in the order of the log, then "train"."""
    splits = dict.fromkeys(split for split, name in run.curves if name == metric)
    return sorted(splits, key=lambda split: split == "train")


def common_split(runs: Sequence[LoggedRun], metric: str) -> Optional[str]:
    """Return the first split, of those of the first run, in which all runs have the metric.

    Runs without the metric do not count. None where there is none.
    """
    splits = [splits for splits in (splits_of(run, metric) for run in runs) if splits]
    of_first = splits[0] if splits else []
    return next((split for split in of_first if all(split in other for other in splits)), None)


def validation(run: LoggedRun, metric: str, split: Optional[str]) -> List[Point]:
    """Return [(updates, value)] of a split, or of the run's own first one where it is None.

    Without NaN, which is neither better nor worse than a number.
    """
    chosen = split or next(iter(splits_of(run, metric)), "train")
    points = run.curves.get((chosen, metric), [])
    return [point for point in points if not math.isnan(point[1])]


def best_point(points: Sequence[Point], metric: str) -> Point:
    """Return the first (updates, value) with the best value."""
    sign = 1 if is_lower_better(metric) else -1
    # of equal values the earliest
    return min(points, key=lambda point: (sign * point[1], point[0]))


def first_to_reach(points: Sequence[Point], metric: str, goal: float) -> Any:
    """Return the first number of updates with a value as good as `goal`."""
    return next(
        u for u, value in points if (value <= goal if is_lower_better(metric) else value >= goal)
    )


def summary(runs: Sequence[LoggedRun], metric: str) -> str:
    """Return Markdown: each run's best value and when; when it reached the worst of these.

    Says on stderr which subsets are compared where no subset is in all logs.
    """
    split = common_split(runs, metric)
    having = [run for run in runs if splits_of(run, metric)]
    if split is None and having:
        subsets = ", ".join(f"{run.label}: {splits_of(run, metric)[0]}" for run in having)
        print(f"{metric}: no subset is in all logs; compared are {subsets}", file=sys.stderr)
    validated = {run.label: (run, validation(run, metric, split)) for run in runs}
    best = {label: best_point(points, metric) for label, (_, points) in validated.items() if points}
    # the worst of the best values is one that every run has reached: times to it can be compared
    values = [value for _, value in best.values()]
    worst = max if is_lower_better(metric) else min
    goal = worst(values, default=math.nan)
    of_split = "" if split in (None, "valid") else f", {split}"
    header = [f"{metric}{of_split}", "best", "updates", "hours", f"updates to {goal:g}", "hours"]
    body: List[List[Any]] = []
    for label, (run, points) in validated.items():
        if label not in best:
            body.append([label, *["-"] * 5])  # its log lacks the metric, or has NaN alone
            continue
        at, value = best[label]
        reached = first_to_reach(points, metric, goal)
        hours = hours_at(run, [at, reached])
        body.append([label, f"{value:g}", at, f"{hours[0]:.3f}", reached, f"{hours[1]:.3f}"])
    return markdown_table(header, body)


def table(runs: Sequence[LoggedRun], panels: Sequence[Panel]) -> Iterator[str]:
    """Yield the lines of the .tsv file: what is in the picture, one point a line."""
    yield "run\tsplit\tmetric\tupdates\thours\tvalue"
    for metric in dict.fromkeys(metric for _, metrics in panels for metric in metrics):
        for run, split, _, points in curves_of(runs, [metric]):
            for (updates, value), hours in zip(points, hours_at(run, [u for u, _ in points])):
                yield f"{run.label}\t{split}\t{metric}\t{updates}\t{hours:.5f}\t{value:g}"


def draw(
    runs: Sequence[LoggedRun],
    timed: Sequence[LoggedRun],
    panels: Sequence[Panel],
    title: Optional[str] = None,
) -> Any:
    """Return a figure with a row for each panel: over updates, over hours."""
    figure, axes = new_figure(2 * len(panels), 2)
    for place, (name, metrics) in enumerate(panels):
        draw_panel(axes[2 * place], runs, name, metrics)
        draw_panel(axes[2 * place + 1], timed, name, metrics, "hours")
    legends_below(figure, axes)
    if title:
        figure.suptitle(literal(title))
    return figure


def compare_runs(args: Namespace) -> int:
    """Write the picture and beside it .tsv (all points) and .md (the summary, also printed)."""
    if args.pair and args.per_pair:
        raise UsageError(f"--pair {args.pair} with --per-pair, which compares all pairs: give one")
    runs = read_runs(args, [".tsv", ".md"])
    check_pair(runs, args.pair)
    if args.pair:
        runs = [of_pair(run, args.pair) for run in runs]
    panels = select(runs, args.metric, METRICS, args.per_pair)
    timed = [by_time(run) for run in runs]  # before anything is written: it may raise
    save(draw(runs, timed, panels, args.title), args.output)
    write_table(table(runs, panels), args.output)
    metrics = dict.fromkeys(metric for _, metrics in panels for metric in metrics)
    text = "\n\n".join(summary(runs, metric) for metric in metrics) + "\n"
    with atomic_path(Path(args.output).with_suffix(".md")) as partial:
        partial.write_text(text, encoding="utf-8")
    print(text, end="")
    return 0
