"""The command lines of fairseq for each system of the recipe."""

from recipe_tools.commands import REPORTING, annealing, run_name, user_dir
from recipe_tools.subwords import SentencePiece

NEVER = 1000000  # nothing at the end of an epoch: the validations are spread over the updates


def last_of(runs, name, seed):
    """Return the checkpoint at the end of the training, where the learning rate is zero."""
    return runs / run_name(name, seed) / "checkpoint_last.pt"


def vectors_of(settings, name, data):
    """Return the file of word vectors that a system starts from, or None."""
    row, _ = settings.parts(name)
    path = data / "subwords.vec"
    return path if str(path) in filled(settings.words[row], data) else None


def filled(words, data):
    """Return the words with {data} replaced by the folder."""
    return [word.replace("{data}", str(data)) for word in words]


def train_command(settings, name, seed, data, runs, extra=()):
    """Return the fairseq-train command of a system; `extra` comes last and therefore wins."""
    row, direction = settings.parts(name)
    source, target = direction.split("-")
    updates = settings.updates_of(row)
    interval = max(1, updates // max(1, settings.validations))
    command = ["fairseq-train", data / "bin", "--user-dir", user_dir()]
    command += ["--task", "translation", "-s", source, "-t", target]
    command += [*filled(settings.words[row], data), *settings.words["train"]]
    command += ["--max-update", updates, *annealing(updates, settings.warmup)]
    command += ["--validate-interval-updates", interval, "--save-interval-updates", interval]
    command += ["--keep-interval-updates", 1, "--no-epoch-checkpoints"]
    command += ["--validate-interval", NEVER, "--save-interval", NEVER, *REPORTING]
    return [*command, "--seed", seed, "--save-dir", runs / run_name(name, seed), *extra]


def generate_command(settings, checkpoint, data, direction, split):
    """Return the fairseq-generate command of a split; its D- lines are plain text."""
    source, target = direction.split("-")
    command = ["fairseq-generate", data / "bin", "--user-dir", user_dir(), "--task", "translation"]
    command += ["-s", source, "-t", target, "--path", checkpoint, *settings.words["evaluate"]]
    command += ["--bpe", "sentencepiece", SentencePiece.flag, data / SentencePiece.file]
    return [*command, "--gen-subset", split, "--no-progress-bar"]
