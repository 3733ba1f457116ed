"""What `fairseq-ext plot` and `compare` share: the logs and metrics that are asked for, and panels.

A panel shows metrics of all runs: a dashed line for training and a solid one with dots for
validation, in one colour for each run and metric.
"""

import fnmatch
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from .. import AddValues, UsageError, check_apart, check_once
from .figures import SUFFIXES, literal, logarithmic
from .training_log import LoggedRun, Point, read_run

# title, {metric: name in the legend}
Panel = Tuple[str, Dict[str, str]]


def add_log_arguments(parser: ArgumentParser, default: Sequence[str]) -> None:
    """Add the options of what to draw. default: the metrics where --metric is not given."""
    parser.add_argument("logs", nargs="+", metavar="LOG", help="output or --log-file of a run")
    parser.add_argument(
        "--output", required=True, metavar="FILE", help=f"picture to write: {', '.join(SUFFIXES)}"
    )
    parser.add_argument(
        "--metric",
        nargs="+",
        action=AddValues,
        metavar="NAME",
        help="draw a panel for each of these: loss, ppl, bleu, de-en_loss ...; a pattern such as "
        f"'*_bleu' puts all metrics that match into one panel (default: {' '.join(default)}, if "
        "in the logs)",
    )
    parser.add_argument(
        "--per-pair",
        action="store_true",
        help="draw each metric of every lang pair (de-en_loss, en-de_loss) instead of the total",
    )
    parser.add_argument(
        "--label",
        nargs="+",
        action=AddValues,
        metavar="TEXT",
        help="name of each run (default: its file's name)",
    )
    parser.add_argument("--title", metavar="TEXT", help="title of the picture")


def read_runs(args: Namespace, beside: Sequence[str] = ()) -> List[LoggedRun]:
    """Return the runs of `add_log_arguments`.

    UsageError for a wrong --output or --label, and for a log that is named twice.
    beside: endings of the files that are written beside the picture.
    """
    paths, output = [Path(log) for log in args.logs], Path(args.output)
    if output.suffix not in SUFFIXES:
        raise UsageError(f"--output {output}: the name must end in {', '.join(SUFFIXES)}")
    for written in (output, *map(output.with_suffix, beside)):
        check_apart(written, paths)
    check_once("LOG", paths)
    labels = args.label or default_labels(paths)
    if len(labels) != len(paths):
        raise UsageError(f"--label: {len(labels)} names for {len(paths)} logs; give one for each")
    if len(set(labels)) != len(labels):
        raise UsageError(f"--label {' '.join(labels)}: allowed: a name of its own for each log")
    return [read_run(path, label) for path, label in zip(paths, labels)]


def default_labels(paths: Sequence[Path]) -> List[str]:
    """Return file names with as many folders before them as tell them apart.

    Without suffix, unless it is all that differs, as of lr0.1 and lr0.2.
    """
    files = [path.resolve() for path in paths]
    stems = [path.with_suffix("") for path in files]
    parts = [path.parts for path in (stems if len(set(stems)) == len(stems) else files)]
    # runs often lie in one folder each, with logs of one name
    for depth in range(1, max(map(len, parts)) + 1):
        labels = ["/".join(part[-depth:]) for part in parts]
        if len(set(labels)) == len(labels):
            break
    return labels


def pairs_of(metric: str, existing: Sequence[str]) -> List[str]:
    """Return the names in `existing` that are `metric` of one lang pair: PAIR_metric.

    The longest known name counts: de-en_nll_loss is the nll_loss of a pair where the logs have
    nll_loss, not a loss of the pair "de-en_nll".
    """
    # for the metric "loss": the ends of nll_loss and whatever else ends in _loss
    longer = [f"_{name}" for name in existing if name.endswith(f"_{metric}") and "-" not in name]
    return [
        name
        for name in existing
        if name.endswith(f"_{metric}")
        and "-" in name[: -len(metric)]
        and not any(name.endswith(suffix) for suffix in longer)
    ]


def select(
    runs: Sequence[LoggedRun],
    requested: Optional[Sequence[str]],
    default: Sequence[str],
    per_pair: bool = False,
) -> List[Panel]:
    """Return [(title, {metric: name in the legend})], one for each panel.

    requested: names and patterns, or None for those of `default` that are there.
    Raises UsageError for one that no run has, with the list of those that exist.
    """
    existing = list(dict.fromkeys(metric for run in runs for metric in run.metrics()))
    panels: List[Panel] = []
    for pattern in requested or default:
        if per_pair:
            names = pairs_of(pattern, existing)
            legend = {name: name[: -len(pattern) - 1] for name in names}  # the pair alone
        else:
            names = fnmatch.filter(existing, pattern)
            legend = {name: name if len(names) > 1 else "" for name in names}
        if legend:
            panels.append((pattern, legend))
        elif requested:  # of the defaults, those that are there are enough
            raise UsageError(
                f"--metric {pattern}{' --per-pair' * per_pair} is in none of the logs; "
                f"they have: {', '.join(sorted(existing))}"
            )
    if not panels:
        raise UsageError(f"--metric is needed; the logs have: {', '.join(sorted(existing))}")
    return panels


def curves_of(
    runs: Iterable[LoggedRun], metrics: Iterable[str]
) -> Iterator[Tuple[LoggedRun, str, str, List[Point]]]:
    """Yield (run, split, metric, points), by run and metric, training first."""
    for run in runs:
        for metric in metrics:
            splits = [split for split, name in run.curves if name == metric]
            for split in sorted(splits, key=lambda split: (split != "train", split)):
                yield run, split, metric, run.curves[split, metric]


def draw_panel(
    axes: Any,
    runs: Sequence[LoggedRun],
    title: str,
    metrics: Dict[str, str],
    unit: str = "updates",
) -> None:
    """Draw the curves of `metrics` ({metric: name in the legend}) of all runs into `axes`.

    unit: of the numbers that the runs' curves have for updates.
    """
    colours: Dict[Tuple[str, str], str] = {}
    for run, split, metric, points in curves_of(runs, metrics):
        # by run and metric, not by split: training and validation of a run have one colour
        colour = colours.setdefault((run.label, metric), f"C{len(colours) % 10}")
        parts = [run.label if len(runs) > 1 else "", metrics[metric], split]
        name = literal(" ".join(filter(None, parts)))
        training = split == "train"
        axes.plot(
            *zip(*points),
            color=colour,
            linestyle="--" if training else "-",
            linewidth=1.1 if training else 1.8,
            marker="" if training and len(points) > 1 else "o",  # a single point is no line
            markersize=3.5,
            alpha=0.75 if training else 1.0,
            # legends leave out what begins with an underscore
            label=f" {name}" if name.startswith("_") else name,
        )
    if title.endswith("ppl"):  # exp of the loss: its first values would flatten the rest
        logarithmic(axes)
    axes.set_xlim(left=0)
    axes.set_xlabel(unit)
    axes.set_ylabel(literal(title))
    axes.grid(alpha=0.3)
