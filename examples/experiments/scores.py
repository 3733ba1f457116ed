"""The scores of a run, each a file of RUN/scores, with the sums that significance rests on."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Optional, Sequence

import numpy as np

from fairseq_ext.tools import atomic_path, make_folder

from . import UsageError

# columns of the results that no field can be
COLUMNS = ("system", "versus")
MEASURED = ("metric", "seeds", "value", "low", "high", "p", "interval", "values")


@dataclass(frozen=True)
class Score:
    """A value of a metric.

    metric: what is measured, as in tables. where: {field: value}, such as the set and direction.
    name: of the metric in `metrics.METRICS`. sums: (N, K), what the items add to the value; None
    where differences are not tested. signature: what the value depends on. references: `digest` of
    the lines that it was scored against.
    """

    metric: str
    value: float
    where: dict[str, str]
    name: Optional[str] = None
    sums: Optional[Sequence[Sequence[float]]] = None
    signature: str = ""
    references: str = ""

    def matrix(self) -> np.ndarray:
        """Return the sums as an array (N, K)."""
        return np.array(self.sums, dtype=np.float64)


def digest(lines: Sequence[str]) -> str:
    """Return what tells whether two sets of lines are the same."""
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def fields(
    words: Sequence[str], option: str = "--where", form: str = "FIELD=VALUE"
) -> dict[str, str]:
    """Return {field: value} of words such as direction=de-en.

    Raises UsageError for others, and for a field that is there twice.
    """
    values: dict[str, str] = {}
    for name, equals, value in (word.partition("=") for word in words):
        if not (name and equals and value):
            raise UsageError(f"{option} {name}{equals}{value}: allowed: {form}")
        if name in (*COLUMNS, *MEASURED):
            raise UsageError(f"{option} {name}=...: a column of the results; name another field")
        if name in values:
            raise UsageError(
                f"{option} {name}={value}: {name} is {values[name]} already; allowed: each once"
            )
        values[name] = value
    return values


def write_score(folder: Path, score: Score) -> None:
    """Write a score to its file, whose name tells what it is, and print it.

    Raises UsageError where the folder cannot be made, and where the file is of another score, whose
    name differs in signs alone.
    """
    make_folder(folder)
    words = [*score.where.values(), score.metric]
    name = "".join(sign if sign.isalnum() or sign in "-_" else "." for sign in " ".join(words))
    file = folder / f"{name}.json"
    if file.is_file():
        before = read_score(file)
        if (before.metric, before.where) != (score.metric, score.where):
            raise UsageError(f"{file} is of {before.metric} {before.where}")
    with atomic_path(file) as temporary:
        temporary.write_text(json.dumps(asdict(score)) + "\n", encoding="utf-8")
    print(f"{' '.join(words)} {score.value:.4g}", flush=True)


def read_score(path: Path) -> Score:
    """Return the score of a file. Raises UsageError where it is damaged."""
    try:
        return Score(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f"{path} is damaged: {error}; remove it and score the run again with score.py"
        ) from error


def read_scores(folder: Path) -> list[Score]:
    """Return the scores of a run's folder, in the order of their names."""
    return [read_score(path) for path in sorted((folder / "scores").glob("*.json"))]
