"""The command lines of fairseq and of `fairseq-ext`, and how they are run."""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from . import RecipeError
from .settings import FOLDER

# glibc hands every large buffer back to the kernel when it is freed; keeping them makes training
# on CPU about 1.4 times faster
MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": "8589934592",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "268435456",
}


def user_dir():
    """Path for `--user-dir`: the installed package, else the one beside this folder."""
    found = importlib.util.find_spec("fairseq_ext")
    if found is not None and found.submodule_search_locations:
        return Path(next(iter(found.submodule_search_locations)))
    return FOLDER.parent.parent / "fairseq_ext"


def run_name(system, seed):
    """Name of a run's folder and log."""
    return f"{system}.{seed}"


def preprocess_command(settings, texts, destination, workers):
    """fairseq-preprocess of the files `texts`/{train,valid,test}.{language}."""
    command = ["fairseq-preprocess", "-s", settings.source, "-t", settings.target]
    for split in settings.files:
        command += [f"--{split}pref", texts / split]
    return [*command, "--destdir", destination, "--joined-dictionary", "--workers", workers]


def model_options(settings, system):
    """Architecture and sizes; the same numbers for all systems."""
    if system == "dual":
        options = ["--task", "dual_translation", "--arch", settings.dual_arch]
        for size, value in settings.sizes.items():
            options += [f"--{size.replace('_', '-')}", value]
        return options
    options = ["--task", "translation", "--arch", settings.stock_arch]
    for side in ("encoder", "decoder"):
        for size, value in settings.sizes.items():
            options += [f"--{side}-{size.replace('_', '-')}", value]
    return options


def train_command(settings, system, seed, data, save_dir, extra=()):
    """fairseq-train of one system; `extra` comes last and therefore wins."""
    source, target = settings.directions_of(system)[0].split("-")
    command = ["fairseq-train", data / "bin", "--user-dir", user_dir(), "-s", source, "-t", target]
    command += model_options(settings, system)
    command += settings.train_options
    # how it is reported and stored; none of it changes what is learnt
    command += ["--log-format", "simple", "--log-interval", 50, "--no-progress-bar"]
    if settings.average_by == "epochs":
        command += ["--keep-last-epochs", settings.average]
    return [*command, "--seed", seed, "--save-dir", save_dir, *extra]


def average_command(settings, save_dir, output):
    """`fairseq-ext average` over the last checkpoints of a run."""
    command = ["fairseq-ext", "average", "--dir", save_dir, "--last", settings.average]
    return [*command, "--by", settings.average_by, "--output", output]


def generate_command(settings, system, checkpoint, data, direction, split, subword_options):
    """fairseq-generate of one direction; writes plain text in its D- lines."""
    source, target = direction.split("-")
    task = "dual_translation" if system == "dual" else "translation"
    command = ["fairseq-generate", data / "bin", "--user-dir", user_dir(), "--task", task]
    command += ["-s", source, "-t", target, "--path", checkpoint, "--gen-subset", split]
    return [*command, *settings.evaluate_options, *subword_options, "--no-progress-bar"]


def shown(command):
    """A command line for people and shells."""
    return " ".join(shlex.quote(str(word)) for word in command)


def environment():
    """The variables of the commands; what the user has set wins.

    One arithmetic thread by default: the models of the small recipe gain nothing from more.
    """
    variables = {"OMP_NUM_THREADS": "1", **MEMORY, **os.environ}
    scripts = str(Path(sys.executable).parent)
    variables["PATH"] = scripts + os.pathsep + variables.get("PATH", "")
    return variables


def program(name, variables):
    """The words that start `name`: an installed command, or `fairseq-ext` from the clone."""
    path = shutil.which(name, path=variables["PATH"])
    if path:
        return [path]
    if name != "fairseq-ext":
        raise RecipeError(f"{name} is not installed; run `make setup` and activate .venv")
    home = str(user_dir().parent)
    variables["PYTHONPATH"] = os.pathsep.join([home, *filter(None, [os.environ.get("PYTHONPATH")])])
    return [sys.executable, "-m", "fairseq_ext"]


def execute(command, log, mode="w", show=None):
    """Run a command, its output going to the file `log`.

    mode: "a" appends to the log of an earlier part of the run.
    show: function line -> text or None; what it returns is printed as it comes.
    Raises RecipeError with the end of the log when the command fails.
    """
    variables = environment()
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
            f"status {status} of: {shown(command)}\n{''.join(tail)}the whole log is {log}"
        )
