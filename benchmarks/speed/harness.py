"""The systems of a family take turns; figures are medians over the turns."""

import contextlib
import statistics
import time
from argparse import Namespace
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple, TypeVar

import numpy as np

from . import families
from .families import Row
from .systems import operations_per_token
from .worker import Worker

SEARCHES = [(1, 1), (1, 64), (5, 1), (5, 64)]  # beam, sentences at a time
MEBI = 1 << 20
Figures = Dict[str, Any]  # of a row
Say = Callable[[str], None]
T = TypeVar("T")


def label(beam: int, sentences: int) -> str:
    """Return the name of a search in figures and tables."""
    return f"beam {beam}, batch {sentences}"


def in_turns(
    members: Mapping[str, T],
    measure: Callable[[T], Tuple[float, int]],
    repeats: int,
    say: Say = lambda text: None,
) -> Dict[str, List[float]]:
    """Return {name: [seconds per item, for every turn but the first]}; the members take turns.

    members: {name: member}. measure(member): (seconds, number of things). The first turn warms up.
    """
    turns: Dict[str, List[float]] = {name: [] for name in members}
    for turn in range(repeats + 1):
        for name, member in members.items():
            seconds, number = measure(member)
            if turn:
                turns[name].append(seconds / number)
                say(f"turn {turn}/{repeats}: {name} {number / seconds:.4g}/s")
    return turns


def summary(seconds: Sequence[float]) -> Figures:
    """Return {"rate": median items per second, "turns": seconds per item}."""
    return {"rate": 1 / statistics.median(seconds), "turns": seconds}


def equal_width(target: float, cost: Callable[[int], float]) -> int:
    """Return the multiple of eight whose ``cost`` is closest to ``target``.

    cost: function of a width, a polynomial of degree two. Raises ValueError where even the smallest
    width costs more.
    """
    multiple, widths = 8, (16, 48, 80)  # three points determine the polynomial
    at = np.poly1d(np.polyfit(widths, [cost(width) for width in widths], deg=2))
    width = multiple
    while at(width + multiple) < target:
        width += multiple
    if at(multiple) > 1.5 * target:
        raise ValueError(f"no stock lstm is as small as {target:.3g} operations for each token")
    return min(width, width + multiple, key=lambda candidate: abs(at(candidate) - target))


def rows_of(family: str, data: Path, args: Namespace) -> List[Row]:
    """Return the rows of the family, with the stock model of as many operations among them."""
    rows = families.rows(family, args)
    if family in families.AT_EQUAL_FLOP:
        target = operations_per_token(data, rows[-1].models[0], args)

        def cost(width: int) -> float:
            flags = families.stock_lstm(args, hidden=width).models[0]
            return operations_per_token(data, flags, args)

        rows.insert(1, families.stock_lstm(args, families.EQUAL, equal_width(target, cost)))
    return rows


def measure_family(
    family: str,
    data: Path,
    folder: Path,
    args: Namespace,
    start: Callable[[Row, Path, Path, Namespace], Worker] = Worker,
    say: Say = print,
) -> Tuple[Dict[str, Figures], Dict[str, float]]:
    """Return {row: figures} of a family, and the peak rates of the machine.

    start(row, data, folder, args): a member at work. args.searches: [(beam, sentences)].
    """
    with contextlib.ExitStack() as stack:
        members = {}
        for number, row in enumerate(rows_of(family, data, args)):
            member_folder = folder / f"{family}.{number}"
            member_folder.mkdir(exist_ok=True)
            members[row.name] = start(row, data, member_folder, args)
            stack.callback(members[row.name].close)
            say(f"{row.name}: first update after {members[row.name].first_update:.1f} s")
        figures: Dict[str, Figures] = {
            name: {"first update": member.first_update} for name, member in members.items()
        }
        measure_training(members, figures, args, say)
        for search in args.searches:
            measure_translation(search, members, figures, args, say)
        machine = next(iter(members.values())).call("machine")
    compare(figures)
    return figures, machine


def measure_training(
    members: Mapping[str, Worker], figures: Dict[str, Figures], args: Namespace, say: Say
) -> None:
    """Add training rates, memory peaks and costs to ``figures``."""
    for member in members.values():
        member.call("forget_peak")
    turns = in_turns(
        members, lambda member: member.call("train"), args.repeats,
        lambda text: say(f"training, {text}"),
    )  # fmt: skip
    for name, member in members.items():
        peak, cost = member.call("peak") / MEBI, member.call("training_cost")
        figures[name].update(parameters=cost.pop("parameters"), peak=peak)
        figures[name]["training"] = {**summary(turns[name]), **cost}


def measure_translation(
    search: Tuple[int, int],
    members: Mapping[str, Worker],
    figures: Dict[str, Figures],
    args: Namespace,
    say: Say,
) -> None:
    """Add rates and costs of a search, (beam, sentences), to ``figures``."""
    turns = in_turns(
        members, lambda member: member.call("translate", *search), args.repeats,
        lambda text: say(f"{label(*search)}, {text}"),
    )  # fmt: skip
    for name, member in members.items():
        cost = member.call("translation_cost", *search)
        figures[name][label(*search)] = {**summary(turns[name]), **cost}


def compare(figures: Dict[str, Figures]) -> None:
    """Add to every figure its ratio to the first row's, and the share of the limit."""
    first = next(iter(figures.values()))
    for row in figures.values():
        row["peak ratio"] = row["peak"] / first["peak"] if first["peak"] > 0 else None
        for name, part in row.items():
            if isinstance(part, dict):
                stock = first[name]
                part["ratio"] = part["rate"] / stock["rate"]
                part["expected ratio"] = stock["operations"] / part["operations"]
                part["ratio at equal FLOP"] = part["ratio"] / part["expected ratio"]
                part["share of the limit"] = part["seconds"] * part["rate"]


class Clock:
    """Lines of progress with the time since the start."""

    def __init__(self) -> None:
        self.start = time.perf_counter()

    def __call__(self, text: str) -> None:
        """Print a line."""
        print(f"[{self.seconds():6.1f} s] {text}", flush=True)

    def seconds(self) -> float:
        """Return the seconds since the start."""
        return time.perf_counter() - self.start
