"""Pictures, and the tables beside them, of all commands that draw."""

import io
from pathlib import Path
from typing import Any, Dict, Iterable, List, Tuple, Union

from .. import UsageError, atomic_path

SUFFIXES = (".png", ".pdf", ".svg")
PANEL_INCHES = (5.6, 4.2)
LEGEND_LINE_INCHES = 0.2
# a longer name has a line of the legend to itself
SHORT_NAME = 36


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


def logarithmic(axes: Any, axis: str = "y", scale: str = "log") -> None:
    """Make an axis of a panel logarithmic, with plain numbers such as 600 as labels.

    axis: "y", the vertical one, or "x". scale: "symlog" has a place for zero.
    """
    from matplotlib.ticker import LogFormatter

    class PlainNumbers(LogFormatter):
        """Labels the ticks that matplotlib labels; its own labels are such as 6 x 10^2."""

        def __call__(self, x: float, pos: Any = None) -> str:
            """Return the label of a tick, "" for none."""
            return f"{x:,.10g}" if super().__call__(x, pos) else ""

    axes.set(**{f"{axis}scale": scale})
    ticks = {"x": axes.xaxis, "y": axes.yaxis}[axis]
    linear_up_to = 1 if scale == "symlog" else None
    ticks.set_major_formatter(PlainNumbers(linthresh=linear_up_to))
    ticks.set_minor_formatter(PlainNumbers(linthresh=linear_up_to))


def legends_below(figure: Any, axes: Iterable[Any]) -> None:
    """Put the legend of each of these panels under it, where it covers no curve.

    The figure grows by the lines of the legends, so that the panels keep their size.
    """
    lines: Dict[int, int] = {}  # of the longest legend in each row of panels
    for panel in axes:
        _, names = panel.get_legend_handles_labels()
        if not names:
            continue
        columns = 2 if max(map(len, names)) <= SHORT_NAME else 1
        panel.legend(
            fontsize="small",
            frameon=False,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.12),  # under the label of the horizontal axis
            ncol=columns,
        )
        row = panel.get_subplotspec().rowspan.start
        lines[row] = max(lines.get(row, 0), -(-len(names) // columns))
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + LEGEND_LINE_INCHES * sum(lines.values()))


def save(figure: Any, output: Union[str, Path]) -> None:
    """Write the picture."""
    picture = io.BytesIO()  # into a file, an error of zlib would hide that the disk is full
    figure.savefig(picture, dpi=120, format=Path(output).suffix[1:])
    with atomic_path(output) as partial:
        partial.write_bytes(picture.getvalue())


def write_table(lines: Iterable[str], output: Union[str, Path]) -> None:
    """Write lines beside the picture, as .tsv."""
    with atomic_path(Path(output).with_suffix(".tsv")) as partial:
        partial.write_text("\n".join(lines) + "\n", encoding="utf-8")
