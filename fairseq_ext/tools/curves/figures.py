"""Pictures, and the tables beside them, of all commands that draw."""

from pathlib import Path
from typing import Any, Iterable, List, Tuple, Union

from .. import UsageError, atomic_path

SUFFIXES = (".png", ".pdf", ".svg")
PANEL_INCHES = (5.6, 4.2)


def new_figure(
    panels: int, columns: int, inches: Tuple[float, float] = PANEL_INCHES
) -> Tuple[Any, List[Any]]:
    """Return a matplotlib figure and its axes: panels in rows of at most so many columns.

    inches: width and height of a panel.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("matplotlib is missing; install it: pip install matplotlib") from error
    columns = min(panels, columns)
    rows = -(-panels // columns)  # rounded up
    size = (inches[0] * columns, inches[1] * rows)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)  # draws without a display, and leaves pyplot's state alone
    return figure, [figure.add_subplot(rows, columns, place + 1) for place in range(panels)]


def literal(text: str) -> str:
    """Return what matplotlib shows as the text: its dollar signs would begin formulas."""
    return text.replace("$", r"\$")


def save(figure: Any, output: Union[str, Path]) -> None:
    """Write the picture."""
    with atomic_path(output) as partial:
        figure.savefig(partial, dpi=120)


def write_table(lines: Iterable[str], output: Union[str, Path]) -> None:
    """Write lines beside the picture, as .tsv."""
    with atomic_path(Path(output).with_suffix(".tsv")) as partial:
        partial.write_text("\n".join(lines) + "\n", encoding="utf-8")
