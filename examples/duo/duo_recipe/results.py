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
    """Yield the JSON records of a log of fairseq that have the key `mark`."""
    with open(log, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            start = line.find('{"')
            if start >= 0 and f'"{mark}"' in line:
                yield json.loads(line[start:])


def scores_of_test(log):
    """Return {score: value} of a log of fairseq-validate. Raises RecipeError when it has none."""
    scores = list(entries(log, "test_accuracy"))
    if not scores:
        raise RecipeError(f"{log} has no test scores")
    return {name: float(scores[-1][f"test_{name}"]) for name in MEASURED}


def training_facts(log):
    """Return validation accuracy, epochs, seconds (with validation) and texts/s of a training."""
    validations = list(entries(log, "valid_accuracy"))
    epochs = list(entries(log, "train_ups"))
    if not validations or not epochs:
        raise RecipeError(f"{log}: it has no finished training epoch")
    best = min(validations, key=lambda entry: float(entry["valid_loss"]))
    speeds = [float(entry["train_ups"]) * float(entry["train_bsz"]) for entry in epochs]
    return {
        "valid_accuracy": float(best["valid_accuracy"]),
        "epochs": len(epochs),
        "seconds": float(epochs[-1]["train_wall"]),
        "documents_per_second": round(statistics.median(speeds)),
    }


@contextlib.contextmanager
def claimed(folder):
    """Enter with True if no other process works in `folder`; a process that ends releases it."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def stored_result(folder, settings=None):
    """Return the content of the scores.json of a run, or None when there is none.

    Raises RecipeError when `settings` are given and it was made with others.
    """
    path = folder / SCORES
    if not path.is_file():
        return None
    result = json.loads(path.read_text(encoding="utf-8"))
    if settings is not None and result["settings"] != json.loads(json.dumps(settings)):
        changed = [key for key in settings if result["settings"].get(key) != settings[key]]
        raise RecipeError(
            f"{path} was made with other {', '.join(changed)}; name another RUNS, or remove it"
        )
    return result


def all_results(runs):
    """Return {method: {sets: [result, by seed]}} of all runs. Raises RecipeError for none."""
    results = {}
    for path in sorted(runs.glob(f"*.*.*/{SCORES}")):
        result = json.loads(path.read_text(encoding="utf-8"))
        if path.parent.name == run_name(result["system"], result["seed"]):
            method, _, sets = result["system"].partition(".")
            results.setdefault(method, {}).setdefault(tuple(sets.split("+")), []).append(result)
    if not results:
        raise RecipeError(f"RUNS {runs} has no scores.json; run couples.py")
    return results
