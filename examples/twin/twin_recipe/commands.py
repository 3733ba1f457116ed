"""The command lines of fairseq for each system of the recipe."""

from recipe_tools.commands import REPORTING, annealing, run_name, user_dir

NEVER = 1000000  # nothing at the end of an epoch: corpora differ in the length of theirs


def checkpoint_of(settings, runs, system, seed):
    """Return the scored checkpoint; the best has the lowest validation loss of the forward net."""
    return runs / run_name(system, seed) / f"checkpoint_{settings.checkpoint}.pt"


def train_command(settings, system, seed, data, runs, extra=()):
    """Return the fairseq-train command of a system; `extra` comes last and therefore wins."""
    interval = max(1, settings.updates // max(1, settings.validations))
    command = ["fairseq-train", data / "bin", "--user-dir", user_dir()]
    command += [*settings.kind.task(settings), *settings.words["model"], *settings.words[system]]
    command += [*settings.words["train"], "--max-update", settings.updates]
    command += annealing(settings.updates, settings.warmup)
    command += ["--validate-interval-updates", interval, "--save-interval-updates", interval]
    command += ["--keep-interval-updates", 1, "--no-epoch-checkpoints"]
    command += ["--validate-interval", NEVER, "--save-interval", NEVER, *REPORTING]
    return [*command, "--seed", seed, "--save-dir", runs / run_name(system, seed), *extra]


def generate_command(settings, checkpoint, data, split):
    """Return the fairseq-generate command; its D- lines are plain text."""
    command = ["fairseq-generate", data / "bin", "--user-dir", user_dir()]
    command += [*settings.kind.task(settings), "--path", checkpoint, *settings.words["evaluate"]]
    return [*command, "--gen-subset", split, "--no-progress-bar"]


def distance_command(settings, checkpoint, data, prefix):
    """Return the fairseq-ext twin-distance command on the test set."""
    command = ["fairseq-ext", "twin-distance", checkpoint, data / "bin", "--output", prefix]
    command += ["--unit", settings.kind.UNIT]
    text = settings.kind.TEXT
    return [*command, "--text", data / text(settings)] if text else command
