"""`fairseq-ext plot`: training curves of one or several runs as a picture.

One panel for each --metric; in it a dashed line for training and a solid one with dots for
validation, over the number of updates, in one colour for each run and metric.
"""

import fnmatch
from pathlib import Path

from . import UsageError, atomic_path
from .training_log import read_run

SUFFIXES = (".png", ".pdf", ".svg")
# where no --metric is given: those of these that the logs have
DEFAULT_METRICS = ("loss", "*-*_bleu")
# the names of metrics that grow over orders of magnitude
LOGARITHMIC = ("ppl", "*_ppl")
PANEL_INCHES = (5.6, 4.2)
COLUMNS = 3


def add_arguments(parser):
    parser.add_argument("logs", nargs="+", metavar="LOG", help="output or --log-file of a run")
    parser.add_argument(
        "--output", required=True, metavar="FILE", help=f"the picture: {', '.join(SUFFIXES)}"
    )
    parser.add_argument(
        "--metric",
        nargs="+",
        metavar="NAME",
        help="a panel for each: loss, ppl, bleu, de-en_loss ...; a pattern such as '*_bleu' puts "
        f"all that match into one panel; default: {' '.join(DEFAULT_METRICS)}, if in the logs",
    )
    parser.add_argument(
        "--label", nargs="+", metavar="TEXT", help="name of each run; default: its file's name"
    )
    parser.add_argument("--title", metavar="TEXT", help="a line above the picture")
    parser.add_argument(
        "--tsv", action="store_true", help="write the numbers beside the picture, as .tsv"
    )


def default_labels(paths):
    """File names without suffix; with the folder's name where two are the same."""
    stems = [path.stem for path in paths]
    if len(set(stems)) == len(stems):
        return stems
    return [f"{path.resolve().parent.name}/{path.stem}" for path in paths]


def select(runs, wanted):
    """[(pattern, [metric, ...])], one for each panel.

    wanted: names and patterns, or None for the default ones.
    Raises UsageError for one that no run has, with the list of those that exist.
    """
    existing = sorted({metric for run in runs for metric in run.metrics()})
    panels = []
    for pattern in wanted or DEFAULT_METRICS:
        found = fnmatch.filter(existing, pattern)
        if found:
            panels.append((pattern, found))
        elif wanted:
            raise UsageError(
                f"--metric {pattern} is in none of the logs; they have: {', '.join(existing)}"
            )
    if not panels:
        raise UsageError(f"--metric is needed; the logs have: {', '.join(existing)}")
    return panels


def curves_of(runs, metrics):
    """Yield (run, split, metric, points), by run and metric, training first."""
    for run in runs:
        for metric in metrics:
            splits = [split for split, name in run.curves if name == metric]
            for split in sorted(splits, key=lambda split: (split != "train", split)):
                yield run, split, metric, run.curves[split, metric]


def draw_panel(axes, runs, pattern, metrics):
    """Draw the curves of `metrics` of all runs into `axes`."""
    colours = {}
    for run, split, metric, points in curves_of(runs, metrics):
        colour = colours.setdefault((run.label, metric), f"C{len(colours) % 10}")
        name = [run.label] * (len(runs) > 1) + [metric] * (len(metrics) > 1) + [split]
        training = split == "train"
        axes.plot(
            *zip(*points),
            color=colour,
            linestyle="--" if training else "-",
            linewidth=1.1 if training else 1.8,
            marker="" if training and len(points) > 1 else "o",
            markersize=3.5,
            alpha=0.75 if training else 1.0,
            label=" ".join(name),
        )
    if any(fnmatch.fnmatch(pattern, name) for name in LOGARITHMIC):
        axes.set_yscale("log")
    axes.set_xlabel("updates")
    axes.set_ylabel(pattern)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")


def draw(runs, panels, title=None):
    """A matplotlib figure with one panel for each entry of `panels`."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("matplotlib is missing; install it: pip install matplotlib") from error
    columns = min(len(panels), COLUMNS)
    rows = -(-len(panels) // columns)
    size = (PANEL_INCHES[0] * columns, PANEL_INCHES[1] * rows)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    for index, (pattern, metrics) in enumerate(panels, start=1):
        draw_panel(figure.add_subplot(rows, columns, index), runs, pattern, metrics)
    if title:
        figure.suptitle(title)
    return figure


def table(runs, panels):
    """The lines of the .tsv file: what is in the picture, one point a line."""
    yield "run\tsplit\tmetric\tupdates\tvalue"
    written = set()
    for _, metrics in panels:
        for run, split, metric, points in curves_of(runs, metrics):
            if (run.label, split, metric) not in written:
                written.add((run.label, split, metric))
                for updates, value in points:
                    yield f"{run.label}\t{split}\t{metric}\t{updates}\t{value:g}"


def run(args):
    paths = [Path(log) for log in args.logs]
    output = Path(args.output)
    if output.suffix not in SUFFIXES:
        raise UsageError(f"--output {output}: the name must end in {', '.join(SUFFIXES)}")
    labels = args.label or default_labels(paths)
    if len(labels) != len(paths):
        raise UsageError(f"--label: {len(labels)} names for {len(paths)} logs; give one for each")
    runs = [read_run(path, label) for path, label in zip(paths, labels)]
    panels = select(runs, args.metric)
    figure = draw(runs, panels, args.title)
    with atomic_path(output) as partial:
        figure.savefig(partial, dpi=120)
    if args.tsv:
        with atomic_path(output.with_suffix(".tsv")) as partial:
            partial.write_text("\n".join(table(runs, panels)) + "\n", encoding="utf-8")
    print(output)
    return 0
