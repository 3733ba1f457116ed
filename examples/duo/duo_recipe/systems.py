"""What is trained: the methods on couples of sets of word vectors, and their command lines."""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Tuple

from recipe_tools import RecipeError
from recipe_tools.commands import run_name, user_dir
from recipe_tools.files import digest

TASK = ["--task", "text_classification", "-s", "text", "-t", "label"]
# the same for all methods; the sizes are such that all couples of three sets take minutes
TRAINING = ["--criterion", "label_cross_entropy", "--optimizer", "adam", "--lr", "0.002"]
TRAINING += ["--batch-size", "128", "--max-epoch", "200", "--patience", "5"]
TRAINING += ["--duo-attention", "linear", "--dropout", "0.1"]
SAVING = ["--no-epoch-checkpoints", "--no-last-checkpoints", "--no-save-optimizer-state"]
LOGGING = ["--log-format", "json", "--num-workers", "0", "--no-progress-bar"]
# of two sets; "single" is of one, the diagonal of Tables 2 - 4
METHODS = ("duo", "average", "concatenation")
ARCHES = {"duo": "duo_classifier"}
DATA_KEYS = ("corpus", "seed", "vocabulary", "words", "inputs")


@dataclass(frozen=True)
class System:
    """A method and the names of its one or two sets."""

    method: str
    sets: Tuple[str, ...]

    @property
    def name(self):
        return f"{self.method}.{'+'.join(self.sets)}"


def systems(names, methods=METHODS):
    """Return each set alone, then every couple by each method."""
    listed = [System("single", (name,)) for name in names]
    for couple in itertools.combinations(names, 2):
        listed += [System(method, couple) for method in methods]
    return listed


def named_files(words):
    """Return {name: file} of NAME=FILE words. RecipeError for other words and for missing files."""
    files = {}
    for word in words:
        name, equals, file = word.partition("=")
        free = name and name not in files and not set(name) & set("+./")
        if not equals or not free or not Path(file).is_file():
            raise RecipeError(
                f"--set {word}: must be NAME=FILE, a new name without + . and /, and a file that "
                "exists"
            )
        files[name] = Path(file)
    return files


def settings_of(stamp, system, files, extra):
    """Return what a result depends on. stamp: content of the data's prepared.json."""
    return {
        "data": {key: stamp[key] for key in DATA_KEYS},
        "sets": {name: digest(files[name]) for name in system.sets},
        "options": [*TRAINING, *extra],
    }


def train_command(data, runs, files, system, seed, extra):
    """Return the fairseq-train command of a system; `extra` comes last and therefore wins."""
    arch = ARCHES.get(system.method, f"duo_classifier_{system.method}")
    command = ["fairseq-train", data / "bin", "--user-dir", user_dir(), *TASK, "--arch", arch]
    for place, name in zip("sp", system.sets):
        command += [f"--embed-path-{place}", files[name]]
    command += ["--save-dir", runs / run_name(system.name, seed), "--seed", seed]
    return [*command, *TRAINING, *SAVING, *LOGGING, *extra]


def validate_command(data, checkpoint):
    """Return the fairseq-validate command on the test set."""
    command = ["fairseq-validate", data / "bin", "--user-dir", user_dir(), *TASK, *LOGGING]
    return [*command, "--path", checkpoint, "--valid-subset", "test", "--batch-size", "128"]
