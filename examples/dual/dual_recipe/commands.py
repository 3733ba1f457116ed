"""The command lines of fairseq and of `fairseq-ext` for each system of the recipe."""

from recipe_tools.commands import REPORTING, flags, user_dir


def model_options(settings, system):
    """Architecture and sizes; the same numbers for all systems."""
    if system == "dual":
        sizes = settings.sizes
        return ["--task", "dual_translation", "--arch", settings.dual_arch, *flags(sizes)]
    options = ["--task", "translation", "--arch", settings.stock_arch]
    for side in ("encoder", "decoder"):
        options += flags({f"{side}_{size}": value for size, value in settings.sizes.items()})
    return options


def train_command(settings, system, seed, data, save_dir, extra=()):
    """fairseq-train of one system; `extra` comes last and therefore wins."""
    source, target = settings.directions_of(system)[0].split("-")
    command = ["fairseq-train", data / "bin", "--user-dir", user_dir(), "-s", source, "-t", target]
    command += model_options(settings, system)
    command += [*settings.train_options, *REPORTING]
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
