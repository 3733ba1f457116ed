"""Draws the pictures of the results pages from what was measured.

A picture that changes with what is measured has a digest in its file, by which an outdated one is
known without drawing it.
"""

import hashlib
import io
import json
import os
import re
from pathlib import Path
from typing import Any

from measured import Summary, select, summary

# told apart without colours, too (Okabe and Ito's, that colour-blind people can tell apart)
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = "os^DvPX*<>"
STYLE = 2  # another one draws all pictures again


def points(picture: dict[str, Any]) -> list[list[Summary]]:
    """Return what the rows of each panel of a picture show."""
    return [[summary(row) for row in panel["rows"]] for panel in picture["panels"]]


def curves(panel: dict[str, Any]) -> dict[str, list[tuple[float, Summary]]]:
    """Return {system: [(x, values)]}; x is the number with which the field panel["x"] begins.

    panel["x values"]: {value of the field: what is taken for it}; panel["names"]: {system: name}.
    Or panel["lines"]: {name: [{"x": number, "from": experiment, FIELD: condition}]}.
    """
    if "lines" in panel:
        return {
            name: [(float(place["x"]), summary(without(place, "x"))) for place in places]
            for name, places in panel["lines"].items()
        }
    lines: dict[str, list[tuple[float, Summary]]] = {}
    layout = ("from", "title", "x", "x label", "x values", "x ticks", "y scale", "line", "names")
    values, names = panel.get("x values", {}), panel.get("names", {})
    for m in select(panel["from"], {f: text for f, text in panel.items() if f not in layout}):
        place = re.match(r"[\d.]+", values.get(m[panel["x"]], m[panel["x"]]))
        if place is None:
            raise ValueError(f"{panel['title']}: {panel['x']} = {m[panel['x']]!r} has no number")
        name = names.get(m["system"], m["system"])
        shown = Summary(*(float(m.get(side) or m["value"]) for side in ("value", "low", "high")))
        lines.setdefault(name, []).append((float(place.group()), shown))
    return {name: sorted(line) for name, line in lines.items()}


def without(picks: dict[str, Any], field: str) -> dict[str, Any]:
    """Return the picks without a field."""
    return {name: value for name, value in picks.items() if name != field}


def digest(picture: dict[str, Any]) -> str:
    """Return a text that changes with what the picture shows."""
    values = list(map(curves, picture["curves"])) if "curves" in picture else points(picture)
    shown = json.dumps([STYLE, picture, values], sort_keys=True)
    return hashlib.sha256(shown.encode()).hexdigest()[:16]


def draw_rows(figure: Any, picture: dict[str, Any]) -> None:
    """Draw dots with ranges, a panel above the other."""
    heights = [len(panel["rows"]) + 1.6 for panel in picture["panels"]]
    figure.set_size_inches(8.5, 0.27 * sum(heights) + 0.3)
    grid = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axis, panel, summaries in zip(grid, picture["panels"], points(picture)):
        for place, shown in enumerate(summaries):
            axis.plot(
                [shown.low, shown.high], [place, place], color=COLOURS[0], linewidth=2, alpha=0.5
            )
            axis.plot([shown.mean], [place], "o", color=COLOURS[0], markersize=5)
        axis.axvline(panel.get("line", 0), color="black", linewidth=0.8)
        axis.set_yticks(range(len(summaries)), [row["label"] for row in panel["rows"]])
        axis.set_ylim(len(summaries) - 0.5, -0.5)
        axis.set_title(panel["title"], fontsize=9, loc="left", wrap=True)
        axis.grid(axis="x", alpha=0.3)


def draw_curves(figure: Any, picture: dict[str, Any]) -> None:
    """Draw a curve for each system, two panels beside each other."""
    from matplotlib.ticker import LogLocator

    panels, handles = picture["curves"], dict[str, Any]()
    lines = -(-len(panels) // 2)
    figure.set_size_inches(8.5, 3 * lines + 0.6)
    for number, panel in enumerate(panels, start=1):
        axis = figure.add_subplot(lines, 2, number)
        singles = 0
        for system, line in curves(panel).items():
            place = list(handles).index(system) if system in handles else len(handles)
            colour = COLOURS[place % len(COLOURS)]
            style = {"color": colour, "marker": MARKERS[place % len(MARKERS)], "markersize": 4}
            places, values = zip(*line)
            means, lows, highs = zip(*values)
            if len(line) == 1:  # which has no area; several are drawn beside each other
                singles += 1
                places = (places[0] * (1 + 0.06 * singles),)
                axis.vlines(places, lows, highs, color=colour, alpha=0.5)
            (handle,) = axis.plot(places, means, **style)
            axis.fill_between(places, lows, highs, color=colour, alpha=0.2, linewidth=0)
            handles.setdefault(system, handle)
        if panel.get("y scale") == "log":
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_formatter("")
        if "line" in panel:
            axis.axhline(panel["line"], color="black", linewidth=0.8)
        if "x ticks" in panel:
            axis.set_xscale("log")
            axis.set_xticks(panel["x ticks"], [f"{place:,}" for place in panel["x ticks"]])
            axis.minorticks_off()
        axis.set_title(panel["title"], fontsize=9, loc="left")
        axis.set_xlabel(panel.get("x label") or panel["x"])
        axis.grid(alpha=0.3)
    place = {"loc": "outside lower center", "ncols": picture.get("columns", 4)}
    figure.legend(handles.values(), handles, fontsize=8, **place)


def draw(path: Path, picture: dict[str, Any]) -> None:
    """Draw a picture and note the digest in the SVG file, which is there whole or as it was."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams.update({"svg.hashsalt": "results", "svg.fonttype": "none", "font.size": 9})
    figure = Figure(layout="constrained")
    (draw_curves if "curves" in picture else draw_rows)(figure, picture)
    metadata = {"Date": None, "Description": digest(picture)}
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", metadata=metadata)
    replace_text(path, re.sub(r"(?m) +$", "", drawn.getvalue()))


def replace_text(path: Path, text: str) -> None:
    """Write a file that is there whole or as it was.

    The beginning of a picture has its digest, by which the rest would never be missed.
    """
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)
