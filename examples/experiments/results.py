"""Collects the scores of an experiment's runs, tests differences, and writes them as data.

A line of the data is a value: system, versus (of a difference: the system it is compared with),
fields such as the set and the direction, metric, seeds, mean over them, lowest and highest, p (of
the mean; of a classification, of each seed), the 95% interval of the difference over sentences and,
where a system has several, seeds, and the value of each seed.
"""

import math
import shlex
import statistics
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence

import numpy as np

from fairseq_ext.tools import atomic_path
from fairseq_ext.tools.evaluate.intervals import UNKNOWN, Seeds, interval_of_difference, pooled
from fairseq_ext.tools.evaluate.report import cell, markdown_table, spread
from fairseq_ext.tools.evaluate.scores import TESTS, Scored, paired_test, resample

from . import UsageError, surroundings
from .definition import Experiment, System
from .execution import RECORD, Run
from .files import read_json, write_json
from .metrics import CLASSIFICATIONS, RATES, mcnemar, metric_named
from .scores import COLUMNS, MEASURED, Score, read_scores
from .stored_values import columns, store, write_data
from .trainings import without_shared_trainings

Place = tuple[tuple[str, str], ...]
Where = tuple[Place, str]  # and the metric
# label, where, metric -> {seed: score}
Results = dict[tuple[str, Place, str], dict[int, Score]]
TEST = "bootstrap"
WHOLE = 1e15  # a float below tells whole numbers apart


def run_of(system: System, seed: int, data: Path, runs: Path, options: Sequence[str]) -> Run:
    """Return a run; one that others needed was trained without the options of these."""
    run = Run(system, seed, data, runs)
    is_plain = read_json(run.folder / RECORD).get("train") == run.commands["train"]
    return run if is_plain else Run(system, seed, data, runs, options)


def collect(
    experiment: Experiment,
    data: Path,
    runs: Path,
    seeds: Sequence[int],
    options: Sequence[str] = (),
) -> tuple[Results, list[str]]:
    """Return the scores of all evaluated runs, and the names of the runs that are not.

    options: what the runs were trained with beside the options of the experiment.
    Raises UsageError for runs that were made with other commands, and where there is none.
    """
    results: Results = {}
    places: dict[frozenset[tuple[str, str]], Place] = {}
    missing = []
    for system in experiment.systems.values():
        if not system.evaluate:
            continue
        for seed in seeds:
            run = run_of(system, seed, data, runs, options)
            if not run.is_evaluated():
                missing.append(run.folder.name)
                continue
            for score in read_scores(run.folder):
                where = tuple(score.where.items())
                place = places.setdefault(frozenset(where), where)  # whatever their order
                by_seed = results.setdefault((system.label, place, score.metric), {})
                if seed in by_seed:
                    raise UsageError(
                        f"{experiment.path}: two systems with the label {system.label!r} have "
                        f"{score.metric} {dict(place)}"
                    )
                by_seed[seed] = score
    if not results:
        raise UsageError(f"--runs {runs} has no evaluated run with these seeds")
    return results, missing


def sums_of(scores: Sequence[Score]) -> list[np.ndarray]:
    """Return the sums of each score (N, K). Raises UsageError for sets of different sizes."""
    sums = [score.matrix() for score in scores]
    if len({len(matrix) for matrix in sums}) > 1:
        metric, where = scores[0].metric, scores[0].where
        raise UsageError(f"{metric} {where}: the runs scored sets of different sizes")
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


def lines_of(experiment: Experiment, results: Results) -> list[dict[str, str]]:
    """Return the data: all scores, those of a paper, then the differences of `compare`."""
    about = {system.label: system.fields for system in experiment.systems.values()}
    lines = []
    for (label, place, metric), by_seed in results.items():
        values = {seed: score.value for seed, score in by_seed.items()}
        lines.append(line(label, "", {**about[label], **dict(place)}, metric, values))
    for label, metric, value in experiment.published:
        published = {"system": label, "versus": "", "metric": metric, "value": f"{value:g}"}
        lines.append({**dict.fromkeys(MEASURED, ""), **published})
    spreads = spread_of_seeds(experiment.systems, results)
    for baseline, system in experiment.compare:
        for (label, place, metric), by_seed in results.items():
            peer = results.get((baseline, place, metric), {})
            if label == system and set(peer) & set(by_seed):
                test = difference(peer, by_seed, spreads[place, metric])
                where = {**about[label], **dict(place)}
                measured = test["values"], test["p"], test["interval"]
                lines.append(line(label, baseline, where, metric, *measured))
    return lines


def tests(results: Results, seeds: Sequence[int]) -> dict[str, str]:
    """Return how the differences of what was measured are tested: {fact: text}."""
    scores = [score for by_seed in results.values() for score in by_seed.values()]
    tested = {score.name in CLASSIFICATIONS for score in scores if score.sums is not None}
    texts = {
        False: f"paired bootstrap{' of systems with the same seed' * (len(seeds) > 1)}, "
        f"{TESTS[TEST]:,} resamples, one-sided as in sacrebleu",
        True: "the exact two-sided McNemar test for classifications",
    }
    facts = {"p-values": "; ".join(texts[kind] for kind in sorted(tested))} if tested else {}
    if False in tested:
        over = "sentences"
        if len(seeds) > 1:
            over += " and seeds; the variance between seeds is pooled over the systems"
        facts["intervals"] = f"95%, of differences, over {over}"
    return facts


def circumstances(
    experiment: Experiment,
    results: Results,
    seeds: Sequence[int],
    missing: Sequence[str],
    trained_on: Mapping[str, str],
    options: Sequence[str] = (),
) -> dict[str, str]:
    """Return how the values were measured: {fact: text}, as experiments.json has it.

    trained_on: when, where and with what the runs were trained.
    """
    # metric -> signatures; several where sacrebleu has changed between the runs
    signatures: dict[str, dict[str, None]] = {}
    for score in (score for by_seed in results.values() for score in by_seed.values()):
        if score.signature:
            signatures.setdefault(score.metric, {})[f"`{score.signature}`"] = None
    facts = {
        "recipe": f"`{experiment.name}`",
        "data": experiment.title,
        "seeds": ", ".join(map(str, seeds)),
        **tests(results, seeds),
        **{metric: " and ".join(texts) for metric, texts in signatures.items()},
        **trained_on,
    }
    more = {"more options": f"`{shlex.join(options)}`"} if options else {}
    compared = {label for pair in experiment.compare for label in pair}
    labels = {name: system.label for name, system in experiment.systems.items()}
    gaps = [run for run in missing if labels[run.rpartition(".")[0]] in compared]
    return {**facts, **more, **({"not run": ", ".join(gaps)} if gaps else {})}


def values_of(entry: Mapping[str, str]) -> list[float]:
    """Return the value of each seed of a line."""
    return [float(value) for value in (entry["values"] or entry["value"]).split()]


def shown(entry: Mapping[str, str], digits: int) -> str:
    """Return the cell of a line: mean and range with so many digits after the point, and p."""
    values = values_of(entry)
    if all(abs(value) < WHOLE for value in values):
        text = cell(spread(values), digits)
    else:  # of a run that diverged, maybe hundreds of digits
        mean, low, high = map(number, over_seeds(values))
        text = mean if low == high else f"{mean} ({low} to {high})"
    if entry["interval"]:
        text += f", 95% {' to '.join(f'{float(end):.2f}' for end in entry['interval'].split())}"
    return f"{text}, p {entry['p']}" if entry["p"] else text


def markdown(experiment: Experiment, lines: Sequence[Mapping[str, str]]) -> str:
    """Return tables: for each metric the scores, then the differences."""
    blocks = [f"# {experiment.title}", "Mean (range) over the seeds."]
    for is_difference in (False, True):
        chosen = [entry for entry in lines if bool(entry["versus"]) == is_difference]
        for metric in dict.fromkeys(entry["metric"] for entry in chosen):
            body: dict[str, dict[str, str]] = {}
            heads: dict[str, None] = {}
            entries = [entry for entry in chosen if entry["metric"] == metric]
            is_count = metric not in RATES and all(
                value.is_integer() for entry in entries for value in values_of(entry)
            )
            for entry in entries:
                name = entry["system"] + (f" - {entry['versus']}" if is_difference else "")
                fields = columns([entry])[len(COLUMNS) : -len(MEASURED)]
                where = ", ".join(entry[field] for field in fields) or "value"
                body.setdefault(name, {})[where] = shown(entry, 0 if is_count else 2)
                heads[where] = None
            table = [
                [name, *(cells.get(head, "") for head in heads)] for name, cells in body.items()
            ]
            blocks += [f"{metric}{', differences' if is_difference else ''}:"]
            blocks += [markdown_table(["system", *heads], table)]
    return "\n\n".join(blocks) + "\n"


def without(results: Results, metrics: Sequence[str]) -> Results:
    """Return the scores without those of some metrics; UsageError for one that nothing has."""
    present = sorted({metric for _, _, metric in results})
    for metric in metrics:
        if metric not in present:
            raise UsageError(f"--leave-out {metric}: measured were {', '.join(present)}")
    return {key: by_seed for key, by_seed in results.items() if key[2] not in metrics}


def unfinished(
    experiment: Experiment, runs: Path, seeds: Sequence[int], missing: Sequence[str]
) -> str:
    """Return which runs of these seeds are not in the report: those begun by name, others counted.

    missing: the names of runs that are not evaluated.
    """
    begun = [name for name in missing if (runs / name).is_dir()]
    total = len(seeds) * sum(bool(system.evaluate) for system in experiment.systems.values())
    parts = [f"begun, not yet evaluated: {', '.join(begun)}"] if begun else []
    if len(begun) < len(missing):
        parts.append(
            f"not begun: {len(missing) - len(begun)} of the {total} runs that this experiment has "
            f"with {'these seeds' if len(seeds) > 1 else 'this seed'}"
        )
    return "; ".join(parts) or "every run of these seeds is evaluated"


def report(
    experiment: Experiment,
    data: Path,
    runs: Path,
    seeds: Sequence[int],
    left_out: Sequence[str] = (),
    docs: Optional[Path] = None,
    options: Sequence[str] = (),
    force: bool = False,
) -> None:
    """Write report.csv, report.json and report.md to RUNS and print the tables.

    left_out: metrics that are not reported.
    docs: data of the manual that the values are written to as well, from which `make results`
        makes its tables and pictures.
    options: of the runs, see `collect`.
    force: replace values of the manual although some are of runs that this report is not on.
    """
    results, missing = collect(experiment, data, runs, seeds, options)
    results = without(results, left_out)
    lines = lines_of(experiment, results)
    records = [
        read_json(runs / f"{name}.{seed}" / RECORD) for name in experiment.systems for seed in seeds
    ]
    trained_on = surroundings.facts(record for record in records if record.get("evaluated"))
    facts = circumstances(experiment, results, seeds, missing, trained_on, options)
    write_data(runs / "report.csv", lines)
    write_json(runs / "report.json", facts)
    text = markdown(experiment, lines)
    with atomic_path(runs / "report.md") as temporary:
        temporary.write_text(text, encoding="utf-8")
    print(text)
    print(unfinished(experiment, runs, seeds, missing))
    if docs is not None:
        store(experiment.name.replace("/", "-"), lines, facts, docs, force)
