"""The command lines of fairseq for each system of the recipe."""

from recipe_tools.commands import REPORTING, annealing, run_name, user_dir
from recipe_tools.subwords import SentencePiece

NEVER = 1000000  # nothing at the end of an epoch: sizes differ in the length of theirs


def best_of(runs, name, seed):
    """Return the checkpoint with the lowest validation loss of the translation task."""
    return runs / run_name(name, seed) / "checkpoint_best.pt"


def train_command(settings, name, seed, data, runs, extra=()):
    """Return the fairseq-train command of a system; `extra` comes last and therefore wins."""
    system = settings.system(name)
    updates = system.updates
    interval = max(1, updates // max(1, settings.validations))
    command = ["fairseq-train", data / "bin" / system.size, "--user-dir", user_dir()]
    command += ["--task", "routed_mtl", "--lang-pairs", ",".join(system.pairs)]
    command += ["--main-pair", settings.main, "--target-kinds", "ner=tags,tree=trees,amr=graphs"]
    command += [*settings.words["model", system.model], *settings.words["model", "options"]]
    command += settings.words["train", "options"]
    # as in the paper: the checkpoint by the perplexity of the translation task
    command += ["--best-checkpoint-metric", f"{settings.main}_loss", "--max-update", updates]
    command += annealing(updates, settings.warmup)
    command += ["--validate-interval-updates", interval, "--save-interval-updates", interval]
    command += ["--keep-interval-updates", 1, "--no-epoch-checkpoints"]
    command += ["--validate-interval", NEVER, "--save-interval", NEVER, *REPORTING]
    return [*command, "--seed", seed, "--save-dir", runs / run_name(name, seed), *extra]


def generate_command(settings, checkpoint, data, system, pair, split):
    """Return the fairseq-generate command of a task; its D- lines are plain text."""
    source, target = pair.split("-")
    command = ["fairseq-generate", data / "bin" / system.size, "--user-dir", user_dir()]
    command += ["--task", "routed_mtl", "-s", source, "-t", target, "--path", checkpoint]
    key = "options" if pair == settings.main else "auxiliary"
    command += settings.words["evaluate", key]
    # every target is spelt so that sentencepiece's joining undoes it
    model = data / f"{source}.{SentencePiece.file}"
    command += ["--bpe", "sentencepiece", SentencePiece.flag, model]
    return [*command, "--gen-subset", split, "--no-progress-bar"]


def usage_command(checkpoint, data, system, prefix):
    """Return the `fairseq-ext router-usage` command on the test sets."""
    return ["fairseq-ext", "router-usage", checkpoint, data / "bin" / system.size] + [
        "--output",
        prefix,
    ]
