"""The systems of a family take turns; figures are medians over the turns."""

import contextlib
import statistics
import time
from argparse import Namespace
from pathlib import Path

from . import families
from .worker import Remote

SEARCHES = ((1, 1), (1, 64), (5, 1), (5, 64))  # beam, sentences at a time
MEBI = 1 << 20


def label(beam: int, sentences: int) -> str:
    return f"beam {beam}, batch {sentences}"


def in_turns(members, measure, repeats: int, say=lambda text: None):
    """Return {name: [seconds per item, for every turn but the first]}; the members take turns.

    members: {name: member}. measure(member): (seconds, number of things). The first turn warms up.
    """
    turns = {name: [] for name in members}
    for turn in range(repeats + 1):
        for name, member in members.items():
            seconds, number = measure(member)
            if turn:
                turns[name].append(seconds / number)
                say(f"turn {turn}/{repeats}: {name} {number / seconds:.4g}/s")
    return turns


def summary(seconds):
    """Return {"rate": median items per second, "turns": seconds per item}."""
    return {"rate": 1 / statistics.median(seconds), "turns": seconds}


def equal_width(target: float, cost, widths=(16, 48, 80), multiple=8) -> int:
    """Return the width whose ``cost(width)``, a polynomial of degree two, is closest to ``target``.

    Raises ValueError where even the smallest width costs more.
    """
    first, second, third = widths
    first_cost, second_cost, third_cost = (cost(width) for width in widths)
    slope, further = (
        (second_cost - first_cost) / (second - first),
        (third_cost - second_cost) / (third - second),
    )
    curve = (further - slope) / (third - first)

    def at(width):
        return first_cost + (width - first) * (slope + (width - second) * curve)

    width = multiple
    while at(width + multiple) < target:
        width += multiple
    if at(width) > target and width == multiple and at(multiple) > 1.5 * target:
        raise ValueError(f"no stock lstm is as small as {target:.3g} operations for each token")
    return min(width, width + multiple, key=lambda candidate: abs(at(candidate) - target))


def rows_of(family: str, data, args):
    """Return the rows of the family, with the stock model of as many operations among them."""
    rows = families.rows(family, args)
    if family in families.AT_EQUAL_FLOP:
        from .systems import operations_per_token

        target = operations_per_token(data, rows[-1].models[0], args)

        def cost(width):
            flags = families.stock_lstm(args, hidden=width).models[0]
            return operations_per_token(data, flags, args)

        rows.insert(1, families.stock_lstm(args, families.EQUAL, equal_width(target, cost)))
    return rows


def measure_family(family: str, data, folder: Path, args: Namespace, start=Remote, say=print):
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
        figures = {name: {"first update": member.first_update} for name, member in members.items()}
        measure_training(members, figures, args, say)
        measure_translation(members, figures, args, say)
        machine = next(iter(members.values())).call("machine")
    compare(figures)
    return figures, machine


def measure_training(members, figures, args, say) -> None:
    """Add training rates, memory peaks and costs to ``figures``."""
    for member in members.values():
        member.call("forget_peak")
    turns = in_turns(
        members, lambda member: member.call("train"), args.repeats,
        lambda text: say(f"training, {text}"),
    )  # fmt: skip
    for name, member in members.items():
        peak = member.call("peak") / MEBI
        cost = member.call("training_cost")
        figures[name].update(parameters=cost.pop("parameters"), peak=peak)
        figures[name]["training"] = {**summary(turns[name]), **cost}


def measure_translation(members, figures, args, say) -> None:
    """Add rates and costs of every search to ``figures``."""
    for beam, sentences in args.searches:
        name_of = label(beam, sentences)
        turns = in_turns(
            members, lambda member, search=(beam, sentences): member.call("translate", *search),
            args.repeats, lambda text, of=name_of: say(f"{of}, {text}"),
        )  # fmt: skip
        for name, member in members.items():
            cost = member.call("translation_cost", beam, sentences)
            figures[name][name_of] = {**summary(turns[name]), **cost}


def compare(figures) -> None:
    """Add to every figure its ratio to the first row's, and the share of the limit."""
    first = next(iter(figures.values()))
    for row_figures in figures.values():
        row_figures["peak ratio"] = (
            row_figures["peak"] / first["peak"] if first["peak"] > 0 else None
        )
        for name, part in row_figures.items():
            if not isinstance(part, dict):
                continue
            stock = first[name]
            part["ratio"] = part["rate"] / stock["rate"]
            part["expected ratio"] = stock["operations"] / part["operations"]
            part["ratio at equal FLOP"] = part["ratio"] / part["expected ratio"]
            part["share of the limit"] = part["seconds"] * part["rate"]


class Clock:
    """Lines of progress with the time since the start."""

    def __init__(self):
        self.start = time.perf_counter()

    def __call__(self, text: str) -> None:
        print(f"[{self.seconds():6.1f} s] {text}", flush=True)

    def seconds(self) -> float:
        return time.perf_counter() - self.start
