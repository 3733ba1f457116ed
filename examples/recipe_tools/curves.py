"""Learning curves of runs, from the logs that fairseq-train wrote."""

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fairseq_ext.tools import UsageError, atomic_path
from fairseq_ext.tools.curves.training_log import read_run

from . import RecipeError


def validation_curve(log, metric):
    """Return [(updates, value)] of a metric of the validation set.

    Raises RecipeError naming the log when it cannot be read or has no such metric.
    """
    try:
        points = read_run(log, log.stem).curves.get(("valid", metric))
    except UsageError as error:
        raise RecipeError(str(error)) from error
    if points is None:
        raise RecipeError(f"{log} has no validation with {metric}")
    return points


def panels(titles, columns):
    """Return (figure, {title: axes}): one panel for each title, `columns` in a row."""
    columns = min(columns, len(titles))
    lines = -(-len(titles) // columns)
    figure = Figure(figsize=(4.5 * columns, 3.6 * lines), layout="constrained")
    FigureCanvasAgg(figure)
    axes = {}
    for number, title in enumerate(titles, start=1):
        axes[title] = figure.add_subplot(lines, columns, number)
        axes[title].set_title(title)
        axes[title].grid(alpha=0.3)
    return figure, axes


def name_axes(axes, x, y):
    """Name both axes of every panel, and show what its lines are."""
    for panel in axes.values():
        panel.set_xlabel(x)
        panel.set_ylabel(y)
        panel.legend()


def save(figure, path):
    """Write the picture; the ending of `path` names the format."""
    try:
        with atomic_path(path) as temporary:
            figure.savefig(temporary, dpi=110)
    except (UsageError, ValueError) as error:
        raise RecipeError(f"--output {path}: {error}") from error
