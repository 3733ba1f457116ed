"""Writes the values of a report as CSV, and keeps them with the data of the manual."""

import csv
import json
from pathlib import Path
from typing import Iterable, Mapping, Sequence

from fairseq_ext.tools import atomic_path

from . import UsageError
from .files import locked, write_json
from .scores import COLUMNS, MEASURED

GONE = ("not run", "more options")  # facts of an earlier report that do not outlive it


def columns(lines: Iterable[Mapping[str, str]]) -> list[str]:
    """Return all columns, the fields between versus and metric."""
    names = dict.fromkeys(name for entry in lines for name in entry)
    fields = (name for name in names if name not in (*COLUMNS, *MEASURED))
    return [*COLUMNS, *fields, *MEASURED]


def write_data(path: Path, lines: Sequence[Mapping[str, str]]) -> None:
    """Write the data as a CSV file."""
    with atomic_path(path) as temporary:
        with open(temporary, "w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, columns(lines), restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


def runs_in(lines: Iterable[Mapping[str, str]]) -> set[str]:
    """Return the names of the runs that lines of the data are of."""
    measured = (entry for entry in lines if not entry["versus"])
    return {f"{entry['system']}.{seed}" for entry in measured for seed in entry["seeds"].split()}


def check_nothing_is_lost(file: Path, lines: Iterable[Mapping[str, str]]) -> None:
    """Raise UsageError if the stored data have runs that these lines are not of."""
    if not file.exists():
        return
    with open(file, encoding="utf-8", newline="") as stream:
        lost = runs_in(csv.DictReader(stream)) - runs_in(lines)
    if lost:
        raise UsageError(
            f"--store: {file} has values of {', '.join(sorted(lost))}, this report has not; report "
            "on all seeds, with all runs in --runs, or replace the values by --force"
        )


def store(
    name: str,
    lines: list[dict[str, str]],
    facts: Mapping[str, str],
    docs: Path,
    force: bool = False,
) -> None:
    """Write values and circumstances to the data of the manual.

    Facts that somebody has added to those of an earlier report are kept, and named. Raises
    UsageError, unless forced, if values of other runs would be lost.
    """
    # experiments.json is of all experiments: another report may write it at the same time
    with locked(docs, docs / ".lock", waits=True):
        if not force:
            check_nothing_is_lost(docs / f"{name}.csv", lines)
        write_data(docs / f"{name}.csv", lines)
        experiments = json.loads((docs / "experiments.json").read_text(encoding="utf-8"))
        earlier = experiments.get(name, {})
        added = {fact: earlier[fact] for fact in earlier if fact not in (*facts, *GONE)}
        write_json(docs / "experiments.json", {**experiments, name: {**facts, **added}})
    print(f"written: {docs / name}.csv; `make results` writes the pages")
    for fact, text in added.items():
        print(f"kept in experiments.json, see whether it still holds: {fact}: {text}")
