"""Results of runs: read from fairseq's logs, kept in a file each, claimed by one process."""

import contextlib
import fcntl
import json
import statistics

from recipe_tools import RecipeError
from recipe_tools.commands import run_name

SCORES = "scores.json"
MEASURED = ("accuracy", "macro_f1", "loss")


def entries(log, mark):
    """The JSON records of a log of fairseq that have the key `mark`."""
    with open(log, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            start = line.find('{"')
            if start >= 0 and f'"{mark}"' in line:
                yield json.loads(line[start:])


def scores_of_test(log):
    """{score: value} of the log of fairseq-validate. Raises RecipeError when there is none."""
    found = list(entries(log, "test_accuracy"))
    if not found:
        raise RecipeError(f"{log} holds no test scores")
    return {name: float(found[-1][f"test_{name}"]) for name in MEASURED}


def training_facts(log):
    """Of a training: best validation, epochs, seconds with validation, texts per second without."""
    validations = list(entries(log, "valid_accuracy"))
    epochs = list(entries(log, "train_ups"))
    if not validations or not epochs:
        raise RecipeError(f"{log}: no epoch of training ended in it")
    best = min(validations, key=lambda one: float(one["valid_loss"]))
    speeds = [float(one["train_ups"]) * float(one["train_bsz"]) for one in epochs]
    return {
        "valid_accuracy": float(best["valid_accuracy"]),
        "epochs": len(epochs),
        "seconds": float(epochs[-1]["train_wall"]),
        "documents_per_second": round(statistics.median(speeds)),
    }


@contextlib.contextmanager
def claimed(folder):
    """True inside when no other process works in `folder`; a process that ends lets go of it."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def kept(folder, settings=None):
    """Content of the scores.json of a run, or None when there is none.

    Raises RecipeError when `settings` are given and it was made with others.
    """
    path = folder / SCORES
    if not path.is_file():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    if settings is not None and found["settings"] != json.loads(json.dumps(settings)):
        changed = [key for key in settings if found["settings"].get(key) != settings[key]]
        raise RecipeError(
            f"{path} was made with other {', '.join(changed)}; name another RUNS, or remove it"
        )
    return found


def all_results(runs):
    """{method: {sets: [result, by seed]}} of a folder of runs. Raises RecipeError for none."""
    found = {}
    for path in sorted(runs.glob(f"*.*.*/{SCORES}")):
        result = json.loads(path.read_text(encoding="utf-8"))
        if path.parent.name == run_name(result["system"], result["seed"]):
            method, _, sets = result["system"].partition(".")
            found.setdefault(method, {}).setdefault(tuple(sets.split("+")), []).append(result)
    if not found:
        raise RecipeError(f"RUNS {runs} holds no scores.json; run couples.py")
    return found
