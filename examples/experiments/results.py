"""Collects the scores of an experiment's runs, tests differences, and writes them as data.

A line of the data is a value: system, versus (of a difference: the system it is compared with),
fields such as the set and the direction, metric, seeds, mean over them, lowest and highest, p (of
the mean; of a classification, of each seed), the 95% interval of the difference over sentences and,
where a system has several, seeds, and the value of each seed.
"""

import shlex
from pathlib import Path
from typing import Mapping, Optional, Sequence

from fairseq_ext.tools import atomic_path
from fairseq_ext.tools.evaluate.report import cell, markdown_table, spread
from fairseq_ext.tools.evaluate.scores import TESTS

from . import UsageError, surroundings
from .definition import Experiment, System
from .differences import (
    TEST,
    WHOLE,
    Place,
    Results,
    differences,
    differences_from,
    line,
    number,
    over_seeds,
)
from .execution import RECORD, ROOT, Run
from .files import read_json, write_json
from .metrics import CLASSIFICATIONS, RATES
from .scores import COLUMNS, MEASURED, read_scores
from .stored_values import columns, store, write_data


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
    return lines + differences(experiment.systems, experiment.compare, results)


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
    peers: Sequence[Experiment] = (),
) -> None:
    """Write report.csv, report.json and report.md to RUNS and print the tables.

    left_out: metrics that are not reported.
    docs: data of the manual that the values are written to as well, from which `make results`
        makes its tables and pictures.
    options: of the runs, see `collect`.
    force: replace values of the manual although some are of runs that this report is not on.
    peers: other experiments, with the systems of which those of the same label are compared.
    """
    results, missing = collect(experiment, data, runs, seeds, options)
    results = without(results, left_out)
    lines = lines_of(experiment, results)
    for peer in peers:
        folders = ROOT / "data-bin" / peer.name, ROOT / "runs" / peer.name
        lines += differences_from(peer, collect(peer, *folders, seeds)[0], experiment, results)
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
