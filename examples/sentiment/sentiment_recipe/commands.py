"""The command lines of fairseq and of `fairseq-ext` for each system of the recipe."""

from recipe_tools.commands import REPORTING, best_of, run_name, user_dir

from .settings import CLASSIFIER, LANGUAGE_MODEL, TEXT, system_named

NEVER = 1000000  # nothing at the end of an epoch: --validate-interval-updates counts


def checkpoint_of(runs, system, seed):
    """Return the checkpoint that is evaluated: the best of the last stage."""
    return runs / run_name(system, seed) / "second" / "checkpoint_best.pt"


def best_metric(settings, name, stage):
    """Return the metric that chooses a stage's best checkpoint: loss, then accuracy (Sec. 4.2).

    A generator has no accuracy.
    """
    directions = system_named(name).directions
    if stage is settings.stages[0] or CLASSIFIER not in directions:
        return "loss"
    return f"{CLASSIFIER}_error"


def criterion_options(settings, name, runs, seed):
    """Return the options of the criterion, with the language model of the same seed."""
    if not system_named(name).supervised:
        return ["--criterion", "dual_label_cross_entropy"]
    models = f"{TEXT}={best_of(runs, LANGUAGE_MODEL, seed)}"
    options = ["--criterion", "dual_supervised", "--language-models", models]
    if name == "dsl":  # two models: it wins over the architecture of all systems
        options += ["--arch", settings.further["dsl"]["arch"]]
    return [*options, *settings.further["dsl"]["options"]]


def train_command(settings, name, seed, data, run, stage, extra=()):
    """Return the fairseq-train command of a stage; `extra` comes last and therefore wins."""
    system = system_named(name)
    source, target = system.directions[0].split("-")
    command = ["fairseq-train", data / "bin", "--user-dir", user_dir(), "-s", source, "-t", target]
    command += ["--task", "dual_translation", *settings.model_options, *system.words]
    command += criterion_options(settings, name, run.parent, seed)
    command += [*settings.train_options, *stage.words]
    command += ["--max-update", stage.updates, "--patience", settings.patience]
    command += ["--validate-interval-updates", settings.interval, "--validate-interval", NEVER]
    command += ["--save-interval-updates", settings.interval, "--save-interval", NEVER]
    command += ["--keep-interval-updates", 1, "--no-epoch-checkpoints"]
    command += ["--best-checkpoint-metric", best_metric(settings, name, stage), *REPORTING]
    first = settings.stages[0]
    if stage is not first:
        command += ["--finetune-from-model", run / first.name / "checkpoint_best.pt"]
    return [*command, "--seed", seed, "--save-dir", run / stage.name, *extra]


def inference(settings, data, checkpoint, direction, split):
    """Return the words that fairseq-generate and fairseq-ext tune-alpha share."""
    source, target = direction.split("-")
    words = [data / "bin", "-s", source, "-t", target, "--path", checkpoint]
    return [*words, "--gen-subset", split, *settings.evaluate_options]


def generate_command(settings, data, checkpoint, direction, split, extra=()):
    """Return the fairseq-generate command of a direction."""
    words = inference(settings, data, checkpoint, direction, split)
    if "--dual-alpha" not in extra:
        words = without_ranking(words)
    command = ["fairseq-generate", *words, "--user-dir", user_dir(), "--task", "dual_translation"]
    return [*command, "--no-progress-bar", *extra]


def without_ranking(words):
    """Return the words without --dual-length-norm and its value, which only dual inference has."""
    if "--dual-length-norm" not in words:
        return words
    place = words.index("--dual-length-norm")
    return [*words[:place], *words[place + 2 :]]


def tune_command(settings, data, checkpoint, output, extra):
    """Return the fairseq-ext tune-alpha command over the labels of the validation set."""
    reference = data / "text" / f"valid.{CLASSIFIER.split('-')[1]}"
    command = ["fairseq-ext", "tune-alpha", "--ref", reference, "--metric", "accuracy"]
    words = inference(settings, data, checkpoint, CLASSIFIER, "valid")
    return [*command, "--output", output, "--", *words, *extra]
