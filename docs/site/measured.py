"""What was measured: docs/results/data/*.csv, and the records of docs/benchmarks."""

import bisect
import csv
import itertools
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).resolve().parent.parent
DATA = DOCS / "results" / "data"

Measurement = dict[str, str]
# of the numerical integral: the quantile has three correct digits
POINTS = 20_000
# ends of the names of systems that only translate, with what others have trained
WITHOUT_TRAINING = (".inference", ".ensemble", "dual inference")


class Summary(NamedTuple):
    """Mean of measured values, and the lowest and highest of them or of their intervals."""

    mean: float
    low: float
    high: float


class Spread(NamedTuple):
    """How far the seeds of a system lie apart.

    deviation: standard deviation of one seed; largest: difference of two seeds; freedom: degrees
    of freedom of the deviation.
    """

    deviation: float
    largest: float
    freedom: int

    def margin(self, seeds: int) -> float:
        """Return half of the 95% interval of a difference of two systems with so many seeds each.

        Sentences of the test set are not in it.
        """
        return student_quantile(self.freedom) * self.deviation * math.sqrt(2 / seeds)


def student_quantile(freedom: int) -> float:
    """Return the t that Student's distribution exceeds in absolute value in 5% of cases.

    As in fairseq_ext/tools/evaluate/intervals.py, which these pages are made without: with
    t = sqrt(freedom) * tan(angle), the density of the angle is cos(angle) ^ (freedom - 1).
    """
    step = math.pi / (2 * POINTS)
    density = [math.cos((count + 0.5) * step) ** (freedom - 1) for count in range(POINTS)]
    sums = list(itertools.accumulate(density))
    return math.sqrt(freedom) * math.tan(step * bisect.bisect(sums, 0.95 * sums[-1]))


def measurements(name: str) -> list[Measurement]:
    """Return the measurements of an experiment, or of a JSON file of docs/benchmarks."""
    if name.endswith(".json"):
        record = json.loads((DOCS / "benchmarks" / name).read_text(encoding="utf-8"))
        return grown(record) if "axes" in record else compared(record)
    joined: list[Measurement] = []
    for file in name.split("+"):
        with open(DATA / f"{file}.csv", encoding="utf-8", newline="") as stream:
            joined += [
                {"experiment": file, **measurement} for measurement in csv.DictReader(stream)
            ]
    return joined


def compared(record: dict[str, Any]) -> list[Measurement]:
    """Return the ratios of each system to those before it in its family, in a record of run.py."""
    ratios = []
    for family, settings in record["families"].items():
        for setting in settings:
            results = setting["results"]
            for count, system in enumerate(results):
                for peer in list(results)[:count]:
                    shared = {"family": family, "system": system, "versus": peer}
                    shared["threads"] = str(setting["threads"])
                    if system == family and peer == list(results)[count - 1]:
                        shared["peer"] = "closest"
                    ratios += [
                        {**shared, "metric": part, "value": f"{ratio:.2f}"}
                        for part, ratio in part_ratios(results[system], results[peer]).items()
                    ]
    return ratios


def part_ratios(figures: dict[str, Any], peer: dict[str, Any]) -> dict[str, float]:
    """Return the ratios of speeds, of the memory and of the time of an update to a peer's."""
    ratios = {
        part: timed["rate"] / peer[part]["rate"]
        for part, timed in figures.items()
        if is_part(timed)
    }
    ratios["time of an update"] = 1 / ratios["training"]
    if figures["peak"] is not None and peer["peak"] is not None:
        ratios["memory"] = figures["peak"] / peer["peak"]
    return ratios


def is_part(figures: object) -> bool:
    """True for what was timed: training or a search."""
    return isinstance(figures, dict) and "rate" in figures


def grown(record: dict[str, Any]) -> list[Measurement]:
    """Return the slopes of time in a record of growth.py, measured and predicted."""
    slopes = []
    for axis, systems in record["axes"].items():
        for system, kinds in systems.items():
            for kind, curve in kinds.items():
                shared = {"grows": axis, "system": system, "work": kind}
                slopes += [
                    {**shared, "metric": name, "value": f"{value:.2f}"}
                    for name, value in curve["slopes"].items()
                    if not isinstance(value, bool)
                ]
    return slopes


def is_kept(measurement: Measurement, conditions: dict[str, str]) -> bool:
    """True if every condition FIELD=VALUE|VALUE, FIELD=* or FIELD= holds."""
    for field, allowed in conditions.items():
        value = measurement.get(field) or ""
        if not (bool(value) if allowed == "*" else value in allowed.split("|")):
            return False
    return True


def select(name: str, conditions: dict[str, str]) -> list[Measurement]:
    """Return the measurements under some conditions; ValueError without any."""
    selected = [m for m in measurements(name) if is_kept(m, conditions)]
    if not selected:
        raise ValueError(f"{name}: nothing was measured with {conditions}")
    return selected


def summary(picks: dict[str, Any]) -> Summary:
    """Return the values that {"from": experiment, FIELD: condition} selects, as one."""
    conditions = {field: value for field, value in picks.items() if field not in ("from", "label")}
    selected = select(picks["from"], conditions)
    values = [float(m["value"]) for m in selected]
    lows = [(m.get("interval") or m.get("low") or m["value"]).split()[0] for m in selected]
    highs = [(m.get("interval") or m.get("high") or m["value"]).split()[-1] for m in selected]
    return Summary(sum(values) / len(values), min(map(float, lows)), max(map(float, highs)))


def seed_values(measurement: Measurement) -> list[float]:
    """Return the value of each seed; none where they were not recorded."""
    count = len(measurement.get("seeds", "").split())
    if measurement.get("values"):
        return [float(value) for value in measurement["values"].split()]
    ends = [measurement.get(side, "") for side in ("low", "high")]
    return [float(end) for end in ends] if count == 2 and all(ends) else []


def spread(name: str, conditions: dict[str, str]) -> Spread:
    """Return how far seeds lie apart within a system and direction, pooled over all of these.

    What translates with the trainings of other systems varies with their seeds and is left out.
    """
    squares, freedom, largest = 0.0, 0, 0.0
    for measurement in select(name, conditions):
        values = seed_values(measurement)
        if len(values) > 1 and not measurement["system"].endswith(WITHOUT_TRAINING):
            mean = sum(values) / len(values)
            squares += sum((value - mean) ** 2 for value in values)
            freedom += len(values) - 1
            largest = max(largest, max(values) - min(values))
    if not freedom:
        raise ValueError(f"{name}: no two seeds were measured with {conditions}")
    return Spread(math.sqrt(squares / freedom), largest, freedom)
