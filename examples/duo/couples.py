#!/usr/bin/env python3
"""Test accuracy of all couples of a list of word vectors: the paper's Tables 2 - 4.

    python couples.py DATA RUNS --set glove50=FILE --set w2v=FILE [--seeds 1 2 3] [-- OPTIONS]

Every couple of two sets is trained as duo_classifier, every set with itself as
duo_classifier_single, once for each seed; what is there already is not trained again. OPTIONS go
to fairseq-train and win over those here, e.g. -- --duo-attention softmax.
    RUNS/FIRST+SECOND.SEED/    log, checkpoint_best.pt, scores.json
    RUNS/couples.json          all scores      RUNS/couples.md, couples.png: table and heat map
"""

import itertools
import json
import shutil
import statistics
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools import RecipeError
from recipe_tools.cli import make_parser, parse_with_extra, script
from recipe_tools.commands import execute, run_name, user_dir
from recipe_tools.files import written

TASK = ["--task", "text_classification", "-s", "text", "-t", "label"]
TRAINING = ["--criterion", "label_cross_entropy", "--optimizer", "adam", "--lr", "0.001"]
TRAINING += ["--batch-size", "32", "--max-epoch", "200", "--patience", "10"]
TRAINING += ["--duo-attention", "linear", "--dropout", "0.1"]
SAVING = ["--no-epoch-checkpoints", "--no-last-checkpoints", "--no-save-optimizer-state"]
LOGGING = ["--log-format", "json", "--num-workers", "0", "--no-progress-bar"]
SCORES = ("accuracy", "macro_f1", "loss")


def arguments(argv):
    parser = make_parser(__doc__, "data", "runs")
    parser.add_argument(
        "--set",
        action="append",
        required=True,
        metavar="NAME=FILE",
        help="a file of word vectors; name it several times",
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(1, 11)))
    return parse_with_extra(parser, argv)


def named_files(words):
    """{name: file} of NAME=FILE words; RecipeError for what is not, or not there."""
    found = {}
    for word in words:
        name, equals, file = word.partition("=")
        if not equals or not name or not Path(file).is_file() or name in found:
            raise RecipeError(f"--set {word}: must be NAME=FILE, a new name and a file that exists")
        found[name] = file
    return found


def couples(names):
    """All couples and all names with themselves, as the upper half of a table."""
    return list(itertools.combinations_with_replacement(names, 2))


def training_command(data, folder, files, couple, seed, extra):
    """fairseq-train of one couple."""
    first, second = couple
    arch = "duo_classifier" if first != second else "duo_classifier_single"
    command = ["fairseq-train", data / "bin", "--user-dir", user_dir(), *TASK, "--arch", arch]
    command += ["--embed-path-s", files[first]]
    if first != second:
        command += ["--embed-path-p", files[second]]
    command += ["--save-dir", folder, "--seed", seed]
    return [*command, *TRAINING, *SAVING, *LOGGING, *extra]


def scores_in(log):
    """{name: number} that fairseq-validate logged last."""
    found = None
    for line in Path(log).read_text(encoding="utf-8").splitlines():
        start = line.find('{"')
        if start >= 0 and "test_accuracy" in line:
            found = json.loads(line[start:])
    if found is None:
        raise RecipeError(f"{log} holds no test scores")
    return {name: float(found[f"test_{name}"]) for name in SCORES}


def run(data, runs, files, couple, seed, extra):
    """Train and test one couple, unless that is done; returns its scores."""
    folder = runs / run_name("+".join(couple), seed)
    done = folder / "scores.json"
    if done.is_file():
        return json.loads(done.read_text(encoding="utf-8"))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    execute(training_command(data, folder, files, couple, seed, extra), folder / "train.log")
    command = ["fairseq-validate", data / "bin", "--user-dir", user_dir(), *TASK, *LOGGING]
    command += ["--path", folder / "checkpoint_best.pt", "--valid-subset", "test"]
    execute([*command, "--batch-size", "64"], folder / "test.log")
    scores = scores_in(folder / "test.log")
    with written(done) as stream:
        json.dump(scores, stream)
    print(f"{folder.name}: accuracy {scores['accuracy']:.2f}", flush=True)
    return scores


def table(names, accuracies):
    """Markdown: mean and standard deviation of each couple, {couple: [accuracy]}."""
    lines = ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for first in names:
        cells = []
        for second in names:
            values = accuracies.get((first, second))
            if values is None:
                cells.append("-")
                continue
            deviation = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
            cells.append(f"{statistics.mean(values):.2f}{deviation}")
        lines.append(f"| {first} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def heat_map(names, accuracies, path):
    """The means as colours."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    means = {couple: statistics.mean(values) for couple, values in accuracies.items()}
    grid = [[means.get((one, two), float("nan")) for two in names] for one in names]
    figure, axes = pyplot.subplots(figsize=(2 + 0.9 * len(names), 1 + 0.9 * len(names)))
    image = axes.imshow(grid, cmap="viridis")
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axes.set_yticks(range(len(names)), names)
    for (row, one), (column, two) in itertools.product(enumerate(names), enumerate(names)):
        if (one, two) in means:
            axes.text(column, row, f"{means[one, two]:.1f}", ha="center", va="center", color="w")
    figure.colorbar(image, label="test accuracy, %")
    figure.savefig(path, bbox_inches="tight", dpi=150)
    pyplot.close(figure)


def main(argv=None):
    args = arguments(argv)
    files = named_files(args.set)
    names, found = list(files), {}
    for couple in couples(names):
        found[couple] = [
            run(args.data, args.runs, files, couple, seed, args.extra) for seed in args.seeds
        ]
    accuracies = {couple: [one["accuracy"] for one in runs] for couple, runs in found.items()}
    with written(args.runs / "couples.json") as stream:
        json.dump({"+".join(couple): runs for couple, runs in found.items()}, stream, indent=1)
    text = table(names, accuracies)
    with written(args.runs / "couples.md") as stream:
        stream.write(text)
    heat_map(names, accuracies, args.runs / "couples.png")
    print(text)


if __name__ == "__main__":
    script(main)
