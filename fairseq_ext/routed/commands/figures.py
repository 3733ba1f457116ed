"""Pictures of the use of the shared blocks (Zaremoodi et al., Fig. 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Sequence, Tuple

from ...tools.curves.figures import legends_below, literal, new_figure
from .token_shares import ALL, ENCODER, Row

if TYPE_CHECKING:  # the command-line tool reads this file without importing matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def _panels(titles: Sequence[str]) -> Tuple[Figure, Sequence[Axes]]:
    """Return a figure with a panel for each title."""
    figure, axes = new_figure(len(titles), 2, inches=(6, 3.6))
    for panel, title in zip(axes, titles):
        panel.set_title(title)
        panel.set_ylabel("share (mean of tau)")
    return figure, axes


def draw_layers(rows: List[Row]) -> Figure:
    """Draw Fig. 2: bars side by side, blocks along the axis, one colour for each task."""
    whole = [row for row in rows if row.kind == ALL]
    layers, tasks = (list(dict.fromkeys(column)) for column in zip(*((r[1], r[0]) for r in whole)))
    figure, axes = _panels(layers)
    width = 0.8 / len(tasks)
    for panel, layer in zip(axes, layers):
        for row in (row for row in whole if row.layer == layer):
            place = tasks.index(row.task)
            x = [block + (place - (len(tasks) - 1) / 2) * width for block in range(len(row.share))]
            panel.bar(x, row.share, width, color=f"C{place % 10}", label=row.task)
        names = [f"Block {block + 1}" for block in range(len(whole[0].share))]
        panel.set_xticks(range(len(names)), names)
    legends_below(figure, axes[:1])
    return figure


def draw_categories(rows: List[Row]) -> Figure:
    """Draw a stacked bar for each kind of token that the encoder reads and the decoder writes."""
    top = [row.layer for row in rows if not row.layer.startswith(ENCODER)][-1]
    tasks = list(dict.fromkeys(row.task for row in rows))
    places = [(task, layer) for task in tasks for layer in (ENCODER, top)]
    figure, axes = _panels([f"{task}, {layer}" for task, layer in places])
    for panel, (task, layer) in zip(axes, places):
        bars = [row for row in rows if row.task == task and row.layer == layer]
        floor = [0.0] * len(bars)
        for block in range(len(bars[0].share)):
            values = [row.share[block] for row in bars]
            panel.bar(range(len(bars)), values, bottom=floor, label=f"Block {block + 1}")
            floor = [low + value for low, value in zip(floor, values)]
        names = [literal(row.category) for row in bars]
        panel.set_xticks(range(len(bars)), names, rotation=90, fontsize="small")
    legends_below(figure, axes[:1])
    return figure
