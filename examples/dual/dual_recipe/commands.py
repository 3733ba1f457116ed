"""The command lines of fairseq and of `fairseq-ext` for each system of the recipe."""

from recipe_tools.commands import REPORTING, best_of, flags, language_model_command, user_dir


def model_options(settings, system):
    """Return the options for architecture and sizes; all systems have the same sizes."""
    if system.startswith("dual"):
        sizes = settings.sizes
        return ["--task", "dual_translation", "--arch", settings.dual_arch, *flags(sizes)]
    if system == "dsl":
        options = ["--task", "dual_translation", "--arch", settings.further["dsl"]["arch"]]
    else:
        options = ["--task", "translation", "--arch", settings.stock_arch]
    for side in ("encoder", "decoder"):
        options += flags({f"{side}_{size}": value for size, value in settings.sizes.items()})
    return options


def supervised_options(settings, runs, seed):
    """Return the options of dual supervised learning, with the language models of the same seed."""
    paths = {lang: best_of(runs, name, seed) for lang, name in settings.language_models.items()}
    models_argument = ",".join(f"{language}={path}" for language, path in paths.items())
    options = ["--criterion", "dual_supervised", "--language-models", models_argument]
    return [*options, *settings.further["dsl"]["options"]]


def train_command(settings, system, seed, data, save_dir, extra=()):
    """Return the fairseq-train command of a system; `extra` comes last and therefore wins."""
    if system in settings.language_models.values():
        part, folder = settings.further["language_model"], data / "bin" / system
        return language_model_command(part, folder, seed, save_dir, extra)
    source, target = settings.directions_of(system)[0].split("-")
    command = ["fairseq-train", data / "bin", "--user-dir", user_dir(), "-s", source, "-t", target]
    command += model_options(settings, system)
    command += settings.train_options
    if system.endswith("dsl"):
        command += supervised_options(settings, save_dir.parent, seed)
    command += REPORTING
    if settings.average_by == "epochs":
        command += ["--keep-last-epochs", settings.average]
    return [*command, "--seed", seed, "--save-dir", save_dir, *extra]


def average_command(settings, save_dir, output):
    """Return the `fairseq-ext average` command over the last checkpoints of a run."""
    command = ["fairseq-ext", "average", "--dir", save_dir, "--last", settings.average]
    return [*command, "--by", settings.average_by, "--output", output]


def generate_command(settings, system, checkpoint, data, direction, split, subword_options):
    """Return the fairseq-generate command of a direction; its D- lines are plain text."""
    source, target = direction.split("-")
    task = "translation" if system.startswith("stock.") else "dual_translation"
    command = ["fairseq-generate", data / "bin", "--user-dir", user_dir(), "--task", task]
    command += ["-s", source, "-t", target, "--path", checkpoint, "--gen-subset", split]
    return [*command, *settings.evaluate_options, *subword_options, "--no-progress-bar"]


def tune_command(settings, checkpoint, data, direction, picture, subword_options):
    """Return the `fairseq-ext tune-alpha` command of a direction on the validation set."""
    source, target = direction.split("-")
    command = ["fairseq-ext", "tune-alpha", "--ref", data / "raw" / f"valid.{target}"]
    command += ["--output", picture, "--", data / "bin", "-s", source, "-t", target]
    return [*command, "--path", checkpoint, *settings.evaluate_options, *subword_options]
