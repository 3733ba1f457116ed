"""How the time of an update and of a search grows with the size of its input."""

import statistics
from argparse import Namespace
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np

from fairseq_ext.tools.curves.figures import save

from . import families
from .corpus import star, write_corpus
from .families import Row
from .harness import Say
from .report import Cell, Record, heading, number, panels, table
from .systems import System, SystemTranslator

UNITS = {"length": "words", "batch": "sentences", "vocab": "entries", "pairs": "pairs"}
# what is not varied
POINT = {"length": 16, "batch": 8, "vocab": 4000, "pairs": 1}
# a slope that exceeds the predicted one by more than this is called steeper
ALLOWED = 0.1
MARKERS = "os^DvPX*"  # systems are told apart without colours, too


class Curve(NamedTuple):
    """Seconds and counted operations at each value of an axis."""

    values: List[int]
    seconds: List[float]
    operations: List[float]


def slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return the least-squares slope of (log x, log y); at least two different x are needed."""
    return float(np.polyfit(np.log(xs), np.log(ys), deg=1)[0])


def slopes(curve: Curve) -> Dict[str, float]:
    """Return measured and predicted slopes: over all values, and of the last step alone."""
    values, seconds, operations = curve
    return {
        "slope": slope(values, seconds),
        "predicted": slope(values, operations),
        "last step": slope(values[-2:], seconds[-2:]),
        "last predicted": slope(values[-2:], operations[-2:]),
    }


def steeper(slopes: Dict[str, float]) -> bool:
    """True if time grows faster than the operations where the input is largest."""
    return slopes["last step"] > slopes["last predicted"] + ALLOWED


def row_of(system: str, args: Namespace, pairs: int) -> Row:
    """Return the options of a system, with several pairs where it supports them."""
    if system == "transformer":
        return families.rows("duo", args)[0]
    if system == "lstm":
        return families.stock_lstm(args)
    if system in families.SHARED:
        return families.several_pairs(system, args, star(pairs))
    return families.rows(system, args)[-1]


def settings_at(args: Namespace, axis: str, value: int) -> Namespace:
    """Return the settings of a point: ``args`` with the axis' value, one minibatch an update."""
    point = {**POINT, axis: value}
    flags = f"--batch-size {point['batch']} --required-batch-size-multiple 1 {args.flags}"
    # max_tokens: room for every sentence of the batch
    room = point["batch"] * (point["length"] + 2)
    # translation is of one pair
    beam = 0 if axis == "pairs" else args.beam
    changed = dict(point, flags=flags, max_tokens=room, beam=beam, updates=1)
    return Namespace(**{**vars(args), **changed})


def measure_point(system: str, args: Namespace, folder: Path) -> Dict[str, Tuple[float, float]]:
    """Return {"training" or "translation": (seconds, operations)} of one update or one search."""
    folder.mkdir()
    data = write_corpus(
        folder, 2 * args.batch, args.vocab, args.length, args.batch, args.pairs, spread=0
    )
    row = row_of(system, args, args.pairs)
    model = System(data, row.models[0], args)
    model.seconds()
    taken = statistics.median(model.seconds()[0] for _ in range(args.repeats))
    costs: Dict[str, Tuple[float, float]] = {"training": (taken, model.products().operations())}
    if args.beam:
        search = SystemTranslator(model, row.task, args.beam, args.batch, folder, args)
        search.seconds()
        taken = statistics.median(search.seconds() for _ in range(args.repeats))
        costs["translation"] = (taken, search.products().operations())
    return costs


def measure_axis(
    axis: str, values: Sequence[int], system: str, args: Namespace, folder: Path, say: Say
) -> Dict[str, Curve]:
    """Return {"training": Curve, "translation": Curve} of a system."""
    points: Dict[str, List[Tuple[int, float, float]]] = {}
    for value in values:
        here = settings_at(args, axis, value)
        point_costs = measure_point(system, here, folder / f"{axis}.{system}.{value}")
        for name, point in point_costs.items():
            points.setdefault(name, []).append((value, *point))
            say(f"{axis} {value}: {system}, {name}: {point[0]:.4g} s")
    return {name: Curve(*map(list, zip(*columns))) for name, columns in points.items()}


def markdown(record: Record) -> str:
    """Return the table of measured and predicted slopes."""
    columns = ["grows", "system", "", "from", "to", "seconds", "slope", "predicted", "last step"]
    columns += ["predicted", "steeper"]
    lines: List[List[Cell]] = []
    for axis, systems in record["axes"].items():
        for system, curves in systems.items():
            for name, curve in curves.items():
                curve_slopes = curve["slopes"]
                ends = [f"{curve['values'][place]:,}" for place in (0, -1)]
                seconds = " to ".join(number(curve["seconds"][place]) for place in (0, -1))
                verdict = "yes" if steeper(curve_slopes) else ""
                lines.append([axis, system, name, *ends, seconds, *curve_slopes.values(), verdict])
    text = f"{heading(record)}, {record['threads']} thread(s). Seconds are those of one update or "
    text += "one search, at the smallest and at the largest input. The last column marks a last "
    text += f"step whose slope exceeds the predicted one by more than {ALLOWED}.\n\n"
    return text + table(columns, lines)


def styles_of(record: Record) -> Dict[str, Dict[str, str]]:
    """Return {system: colour and marker}, the same in all panels."""
    systems = dict.fromkeys(system for systems in record["axes"].values() for system in systems)
    return {
        system: {"color": f"C{place}", "marker": MARKERS[place % len(MARKERS)]}
        for place, system in enumerate(systems)
    }


def set_scales(panel: Any, values: Sequence[int]) -> None:
    """Make both axes logarithmic, with plain numbers: across, those that were measured."""
    from matplotlib.ticker import LogLocator

    panel.set_xscale("log")
    panel.set_xticks(values, [f"{value:,}" for value in values])
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.minorticks_off()
    panel.set_ylabel("seconds")


def draw(record: Record, path: Path) -> None:
    """Draw a panel for each axis and kind; dashed lines extrapolate the operations."""
    curves_by_panel: Dict[str, List[Tuple[str, Any]]] = {}
    for axis, systems in record["axes"].items():
        for system, curves in systems.items():
            for name, curve in curves.items():
                curves_by_panel.setdefault(f"{name}: {axis}", []).append((system, curve))
    figure, axes = panels(list(curves_by_panel), 2)
    styles = styles_of(record)
    handles: Dict[str, Any] = {}
    for title, panel in axes.items():
        for system, curve in curves_by_panel[title]:
            style, values, operations = styles[system], curve["values"], curve["operations"]
            (handle,) = panel.plot(values, curve["seconds"], "-", markersize=4, **style)
            handles.setdefault(system, handle)
            unit = curve["seconds"][-1] / operations[-1]
            predicted = [unit * count for count in operations]
            panel.plot(values, predicted, "--", color=style["color"], linewidth=1)
        set_scales(panel, values)
        panel.set_xlabel(UNITS[title.rpartition(" ")[2]])
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=4)
    save(figure, path)
