"""The command lines of fairseq for each system of the recipe."""

from recipe_tools.commands import REPORTING, annealing, run_name, user_dir

BEST = "checkpoint_best.pt"
# no validation and no checkpoint at the end of an epoch: a small corpus has very many of them
NEVER = 1000000


def best_of(runs, name, seed):
    """Return the checkpoint of a run that is best on the validation set."""
    return runs / run_name(name, seed) / BEST


def length_options(settings, system):
    """Return updates and validations: so many per pair, whatever the number of pairs."""
    pairs = max(1, len(system.pairs))
    updates = settings.updates[system.section]
    interval = max(1, updates // max(1, settings.validations[system.section])) * pairs
    options = ["--max-update", updates * pairs, *annealing(updates * pairs, settings.warmup)]
    options += ["--validate-interval-updates", interval, "--save-interval-updates", interval]
    options += ["--keep-interval-updates", 1, "--no-epoch-checkpoints"]
    return [*options, "--validate-interval", NEVER, "--save-interval", NEVER]


def model_options(settings, system, seed, runs):
    """Return the options for architecture, sizes, and the checkpoints that training starts from."""
    if system.kind == "df":
        single, language_model = (best_of(runs, name, seed) for name in system.starts_from)
        options = ["--arch", settings.arch["fusion"]]
        return [*options, "--translation-model", single, "--language-model", language_model]
    options = ["--arch", settings.arch["model"], *settings.options["model"]]
    if system.tuned or system.kind == "more":
        options += ["--finetune-from-model", best_of(runs, system.starts_from[0], seed)]
    if system.kind == "more":
        options += ["--train-only", "output"]  # what deep fusion trains
    return options


def train_command(settings, system, seed, data, runs, extra=()):
    """Return the fairseq-train command of a system; `extra` comes last and therefore wins."""
    command = ["fairseq-train", data / "bin" / system.folder, "--user-dir", user_dir()]
    if system.kind == "lm":
        command += ["--task", "language_modeling", "--arch", settings.arch["language_model"]]
        command += settings.options["language_model"]
    else:
        command += ["--task", "multiway_translation", "--lang-pairs", ",".join(system.pairs)]
        command += model_options(settings, system, seed, runs)
        command += settings.options["train"]
        if "low_resource" in system.sections or "." in system.folder:
            command += settings.options["low_resource"]
        if system.section in ("tune", "fusion"):
            command += settings.options[system.section]
    command += [*length_options(settings, system), *REPORTING]
    save_dir = runs / run_name(system.name, seed)
    return [*command, "--seed", seed, "--save-dir", save_dir, *extra]


def generate_command(settings, checkpoint, data, direction, split, subwords):
    """Return the fairseq-generate command of a direction; its D- lines are plain text."""
    command = decoding_command("fairseq-generate", settings, checkpoint, data, direction, subwords)
    return [*command, "--gen-subset", split]


def interactive_command(settings, checkpoint, data, direction, source, subwords):
    """Return the fairseq-interactive command on plain text; its D- lines are plain text."""
    name = "fairseq-interactive"
    command = decoding_command(name, settings, checkpoint, data, direction, subwords)
    return [*command, "--input", source, "--buffer-size", 2000]


def decoding_command(program, settings, checkpoint, data, direction, subwords):
    """Return the options that decoding a binarised set and decoding text share."""
    source, target = direction.split("-")
    command = [program, data / "bin" / "all", "--user-dir", user_dir()]
    command += ["--task", "multiway_translation", "-s", source, "-t", target, "--path", checkpoint]
    return [*command, *settings.options["evaluate"], *subwords, "--no-progress-bar"]
