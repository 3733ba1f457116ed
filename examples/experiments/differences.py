"""Differences between systems, with their significance, as lines of the data."""

import math
import statistics
from dataclasses import replace
from typing import Any, Iterable, Mapping, Sequence

import numpy as np

from fairseq_ext.tools.evaluate.intervals import UNKNOWN, Seeds, interval_of_difference, pooled
from fairseq_ext.tools.evaluate.scores import TESTS, Scored, paired_test, resample

from . import UsageError
from .definition import Experiment, System
from .metrics import CLASSIFICATIONS, mcnemar, metric_named
from .scores import Score
from .trainings import without_shared_trainings

Place = tuple[tuple[str, str], ...]
Where = tuple[Place, str]  # and the metric
# label, where, metric -> {seed: score}
Results = dict[tuple[str, Place, str], dict[int, Score]]
TEST = "bootstrap"
WHOLE = 1e15  # a float below tells whole numbers apart


def sums_of(scores: Sequence[Score]) -> list[np.ndarray]:
    """Return the sums of each score (N, K). Raises UsageError for sets that differ."""
    sums = [score.matrix() for score in scores]
    metric, where = scores[0].metric, scores[0].where
    if len({len(matrix) for matrix in sums}) > 1:
        raise UsageError(f"{metric} {where}: the runs scored sets of different sizes")
    # scores that were written before December 2026 have no digest
    if len({score.references for score in scores} - {""}) > 1:
        raise UsageError(f"{metric} {where}: the runs were scored against different references")
    return sums


def difference(
    baseline: Mapping[int, Score], system: Mapping[int, Score], spread: Seeds = UNKNOWN
) -> dict[str, Any]:
    """Return {"values": differences by seed, "p": [p-values], "interval": (low, high)}.

    spread: how far seeds lie apart, for the interval, which is empty where sums are not resampled.
    Values are of the seeds that both have. p is of the paired bootstrap over the items, of the mean
    over the seeds; of a classification it is that of the McNemar test, of each seed. There is none
    where the sums are not stored, none of a single item, whose resamples are all alike, and none of
    a run that diverged: no difference by chance reaches NaN, so that p would be the lowest.
    """
    seeds = sorted(set(baseline) & set(system))
    values = {seed: system[seed].value - baseline[seed].value for seed in seeds}
    first, untested = system[seeds[0]], {"values": values, "p": [], "interval": ()}
    if first.name is None or first.sums is None or not all(map(math.isfinite, values.values())):
        return untested
    metric = metric_named(first.name)
    both = sums_of([scores[seed] for scores in (baseline, system) for seed in seeds])
    before, after = both[: len(seeds)], both[len(seeds) :]
    if first.name in CLASSIFICATIONS:
        tests = [mcnemar(*pair) for pair in zip(before, after)]
        return {"values": values, "p": tests, "interval": ()}
    if len(before[0]) < 2:
        return untested
    resamples = resample(len(before[0]), TESTS[TEST])
    base, scored = Scored(metric, before, resamples), Scored(metric, after, resamples)
    if not (np.isfinite(base.samples).all() and np.isfinite(scored.samples).all()):
        return untested
    test = paired_test(metric, base, scored, TEST)
    interval = interval_of_difference(base, scored, spread)
    return {"values": values, "p": [test[0]["p"]], "interval": interval}


def number(value: float) -> str:
    """Return a value as it is stored: counts whole, others with six digits, or nan, inf, -inf."""
    return str(int(value)) if abs(value) < WHOLE and value == int(value) else f"{value:.6g}"


def over_seeds(values: Sequence[float]) -> tuple[float, float, float]:
    """Return mean, lowest and highest; all are NaN where one value is, in whatever order."""
    if any(map(math.isnan, values)):
        return math.nan, math.nan, math.nan
    try:
        mean = statistics.fmean(values)
    except (ValueError, OverflowError):  # both infinities, or a sum that is more than a float holds
        mean = sum(values) / len(values)
    return mean + 0.0, min(values), max(values)


def line(
    label: str,
    versus: str,
    place: Mapping[str, str],
    metric: str,
    values: Mapping[int, float],
    p: Sequence[float] = (),
    interval: Sequence[float] = (),
) -> dict[str, str]:
    """Return a line of the data. place: {field: value}."""
    shown = {seed: number(value + 0.0) for seed, value in sorted(values.items())}
    several = len(values) > 1
    mean, low, high = over_seeds(list(values.values()))
    return {
        "system": label,
        "versus": versus,
        **place,
        "metric": metric,
        "seeds": " ".join(map(str, shown)),
        "value": number(mean),
        "low": number(low) if several else "",
        "high": number(high) if several else "",
        "p": " ".join("<0.0001" if share < 0.0001 else f"{share:.4f}" for share in p),
        "interval": " ".join(map(number, interval)),
        "values": " ".join(shown.values()),
    }


def spread_of_seeds(systems: Mapping[str, System], results: Results) -> dict[Where, Seeds]:
    """Return how far the seeds of the systems lie apart at each place, by each metric."""
    runs: dict[Where, dict[str, Scored]] = {}
    for (label, place, metric), by_seed in results.items():
        of_metric, scores = runs.setdefault((place, metric), {}), list(by_seed.values())
        name = scores[0].name
        if name is None or name in CLASSIFICATIONS or scores[0].sums is None or len(scores) < 2:
            continue
        sums = sums_of(scores)
        of_metric[label] = Scored(metric_named(name), sums, resample(len(sums[0]), TESTS[TEST]))
    return {
        where: pooled(scored[label] for label in without_shared_trainings(systems, scored))
        for where, scored in runs.items()
    }


def differences(
    systems: Mapping[str, System], compare: Iterable[tuple[str, str]], results: Results
) -> list[dict[str, str]]:
    """Return the lines of the differences of pairs of labels (baseline, system)."""
    about = {system.label: system.fields for system in systems.values()}
    spreads = spread_of_seeds(systems, results)
    lines = []
    for baseline, system in compare:
        for (label, place, metric), by_seed in results.items():
            peer = results.get((baseline, place, metric), {})
            if label == system and set(peer) & set(by_seed):
                test = difference(peer, by_seed, spreads[place, metric])
                where = {**about[label], **dict(place)}
                measured = test["values"], test["p"], test["interval"]
                lines.append(line(label, baseline, where, metric, *measured))
    return lines


def differences_from(
    peer: Experiment, peers: Results, experiment: Experiment, results: Results
) -> list[dict[str, str]]:
    """Return the differences from the systems of the same label in another experiment.

    peers: the scores of that experiment. Raises UsageError where no such system has scores.
    """
    of_peer = f" of {peer.name.rpartition('/')[2]}"
    places = {frozenset(place): place for _, place, _ in results}
    renamed = {
        (label + of_peer, places[frozenset(place)], metric): by_seed
        for (label, place, metric), by_seed in peers.items()
        if frozenset(place) in places
    }
    systems = dict(experiment.systems)
    for name, system in peer.systems.items():
        needs = tuple(need + of_peer for need in system.needs)
        systems[name + of_peer] = replace(system, label=system.label + of_peer, needs=needs)
    compare = [(label + of_peer, label) for label in dict.fromkeys(label for label, *_ in results)]
    lines = differences(systems, compare, {**renamed, **results})
    if not lines:
        raise UsageError(f"--versus {peer.name}: it has no system with the same label and seeds")
    return lines
