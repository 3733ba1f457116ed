"""Command lines of fairseq and of `fairseq-ext`, and how they are run."""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from . import RecipeError

# glibc hands every large buffer back to the kernel when it is freed; keeping them makes training
# on CPU about 1.4 times faster
MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": "8589934592",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "268435456",
}
# how training is reported; none of it changes what is learnt
REPORTING = ["--log-format", "simple", "--log-interval", 50, "--no-progress-bar"]


def user_dir():
    """Return the path for `--user-dir`: the installed package, else that of the clone."""
    spec = importlib.util.find_spec("fairseq_ext")
    if spec is not None and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(__file__).resolve().parents[2] / "fairseq_ext"


def run_name(system, seed):
    """Return the name of a run's folder and log."""
    return f"{system}.{seed}"


def flags(sizes):
    """Return options of sizes: ["--embed-dim", 8] for {"embed_dim": 8}."""
    return [word for key, value in sizes.items() for word in (f"--{key.replace('_', '-')}", value)]


def annealing(updates, warmup):
    """Return a schedule: the rate rises for `warmup` per cent of the updates and falls to zero."""
    options = ["--lr-scheduler", "polynomial_decay", "--total-num-update", updates]
    return [*options, "--warmup-updates", updates * warmup // 100]


def preprocess_command(pair, splits, texts, destination, workers):
    """Return the fairseq-preprocess command of `texts`/SPLIT.LANGUAGE, without dictionaries."""
    source, target = pair.split("-")
    command = ["fairseq-preprocess", "-s", source, "-t", target]
    for split in splits:
        command += [f"--{split}pref", texts / split]
    return [*command, "--destdir", destination, "--workers", workers]


def best_of(runs, system, seed):
    """Return the checkpoint of a run that is best on the validation set."""
    return runs / run_name(system, seed) / "checkpoint_best.pt"


def language_model_command(part, folder, seed, save_dir, extra=()):
    """Return the fairseq-train command of a language model with the stock task.

    part: {"arch": name, "options": words}. folder: `language_data`. `extra` comes last and wins.
    """
    command = ["fairseq-train", folder, "--user-dir", user_dir(), "--task", "language_modeling"]
    command += ["--arch", part["arch"], *part["options"], *REPORTING]
    return [*command, "--seed", seed, "--save-dir", save_dir, *extra]


def shown(command):
    """Return a command line that people and shells can read."""
    return " ".join(shlex.quote(str(word)) for word in command)


def environment():
    """Return the variables of the commands; what the user has set wins.

    One arithmetic thread by default: small models gain nothing from more.
    """
    variables = {"OMP_NUM_THREADS": "1", **MEMORY, **os.environ}
    scripts = str(Path(sys.executable).parent)
    variables["PATH"] = scripts + os.pathsep + variables.get("PATH", "")
    return variables


def program(name, variables):
    """Return the words that start `name`: an installed command, or `fairseq-ext` from the clone."""
    path = shutil.which(name, path=variables["PATH"])
    if path:
        return [path]
    if name != "fairseq-ext":
        raise RecipeError(f"{name} is not installed; run `make setup` and activate .venv")
    home = str(user_dir().parent)
    variables["PYTHONPATH"] = os.pathsep.join([home, *filter(None, [os.environ.get("PYTHONPATH")])])
    return [sys.executable, "-m", "fairseq_ext"]


def execute(command, log, mode="w", show=None, more=None):
    """Run a command; its output goes to the file `log`.

    mode: "a" appends to the log of an earlier part of the run.
    show: function line -> text or None; what it returns is printed as it comes.
    more: {name: text} for the command's environment.
    Raises RecipeError with the end of the log when the command fails.
    """
    variables = {**environment(), **(more or {})}
    name, *words = (str(word) for word in command)
    words = [*program(name, variables), *words]
    tail = []
    with open(log, mode, encoding="utf-8", errors="replace") as stream:
        process = subprocess.Popen(
            words,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
        try:
            for line in process.stdout:
                stream.write(line)
                stream.flush()
                tail = [*tail[-14:], line]
                text = show(line) if show else None
                if text:
                    print(text, flush=True)
        except BaseException:
            # an interrupted recipe leaves no training behind
            process.terminate()
            raise
        finally:
            status = process.wait()
    if status:
        raise RecipeError(
            f"status {status} of the command {shown(command)}\n"
            f"{''.join(tail)}the complete log is {log}"
        )
