"""`fairseq-ext plot`: training curves of one or several runs as a picture.

One panel for each --metric; in it a dashed line for training and a solid one with dots for
validation, over the number of updates, in one colour for each run and metric.
"""

from argparse import ArgumentParser, Namespace
from typing import Any, Iterator, Optional, Sequence, Set, Tuple

from .figures import legends_below, literal, new_figure, save, write_table
from .panels import Panel, add_log_arguments, curves_of, draw_panel, read_runs, select
from .training_log import LoggedRun

# where no --metric is given: those of these that the logs have
DEFAULT_METRICS = ("loss", "bleu")
COLUMNS = 3


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of `fairseq-ext plot`."""
    add_log_arguments(parser, DEFAULT_METRICS)
    parser.add_argument(
        "--tsv", action="store_true", help="write the numbers beside the picture, as .tsv"
    )


def draw(runs: Sequence[LoggedRun], panels: Sequence[Panel], title: Optional[str] = None) -> Any:
    """Return a matplotlib figure with one panel for each entry of `panels`."""
    figure, axes = new_figure(len(panels), COLUMNS)
    for panel, (name, metrics) in zip(axes, panels):
        draw_panel(panel, runs, name, metrics)
    legends_below(figure, axes)
    if title:
        figure.suptitle(literal(title))
    return figure


def table(runs: Sequence[LoggedRun], panels: Sequence[Panel]) -> Iterator[str]:
    """Yield the lines of the .tsv file: what is in the picture, one point a line."""
    yield "run\tsplit\tmetric\tupdates\tvalue"
    written: Set[Tuple[str, str, str]] = set()
    for _, metrics in panels:
        for run, split, metric, points in curves_of(runs, metrics):
            if (run.label, split, metric) not in written:
                written.add((run.label, split, metric))
                for updates, value in points:
                    yield f"{run.label}\t{split}\t{metric}\t{updates}\t{value:g}"


def plot_curves(args: Namespace) -> int:
    """Write the picture and, with --tsv, its numbers."""
    runs = read_runs(args, [".tsv"] if args.tsv else [])
    panels = select(runs, args.metric, DEFAULT_METRICS, args.per_pair)
    save(draw(runs, panels, args.title), args.output)
    if args.tsv:
        write_table(table(runs, panels), args.output)
    print(args.output)
    return 0
