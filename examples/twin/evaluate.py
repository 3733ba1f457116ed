#!/usr/bin/env python3
"""Score one trained system: its best or last checkpoint, as the recipe says.

    python evaluate.py DATA RUNS SYSTEM SEED --recipe digits

Writes into RUNS/SYSTEM.SEED/, for the validation and test sets: SPLIT.hyp (what was predicted),
SPLIT.nll (nats and tokens of each reference), as the metrics need them; scores.json; and of
systems with a backward network what fairseq-ext twin-distance draws (distance.png ...).
"""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools.cli import make_parser, script
from recipe_tools.commands import user_dir
from recipe_tools.corpus import STAMP, stamp_of
from recipe_tools.evaluation import make, translate
from recipe_tools.files import written
from recipe_tools.scores import seconds_per_update
from recipe_tools.training import check_trained
from twin_recipe.commands import (
    checkpoint_of,
    distance_command,
    generate_command,
    train_command,
)
from twin_recipe.likelihood import likelihoods
from twin_recipe.scoring import parameters_of, scores
from twin_recipe.settings import WITH_BACKWARD, read_settings

SHORTEST = 10  # seconds of an epoch whose time is measured; fairseq prints whole ones


def evaluate(settings, data, checkpoint):
    """Return {split: {metric: value}} of the validation and test sets."""
    run, by_split, metrics = checkpoint.parent, {}, settings.kind.METRICS
    for split in ("valid", "test"):
        references = data / "raw" / f"{split}.ref"
        if any(metric.source == "hyp" for metric in metrics):
            command = generate_command(settings, checkpoint, data, split)
            translate(run / f"{split}.hyp", command, [checkpoint, data / STAMP], references)
        if any(metric.source == "nll" for metric in metrics):
            batch = settings.kind.BATCH
            with written(run / f"{split}.nll") as stream:
                for pair in likelihoods(checkpoint, data / "bin", split, user_dir(), batch):
                    stream.write(" ".join(map(repr, pair)) + "\n")
        by_split[split] = scores(metrics, run, split, references)
    return by_split


def main(argv=None):
    args = make_parser(__doc__, "data", "runs", "system", "seed", "--recipe").parse_args(argv)
    settings = read_settings(args.recipe)
    settings.check_system(args.system)
    checkpoint = checkpoint_of(settings, args.runs, args.system, args.seed)
    command = train_command(settings, args.system, args.seed, args.data, args.runs)
    check_trained(args, command, checkpoint)
    stamp_of(args.data)
    scores_by_split, run = evaluate(settings, args.data, checkpoint), checkpoint.parent
    if args.system in WITH_BACKWARD:
        command = distance_command(settings, checkpoint, args.data, run / "distance")
        make(run / "distance.tsv", command, [checkpoint, args.data / STAMP])
    seconds, updates = seconds_per_update(f"{run}.log", SHORTEST)
    result = {
        "system": args.system,
        "seed": args.seed,
        "settings": settings.relevant(args.system),
        "scores": scores_by_split,
        "parameters": parameters_of(checkpoint),
        "seconds_per_update": seconds,
        "updates": updates,
    }
    with written(run / "scores.json") as stream:
        json.dump(result, stream, indent=1)
    for split, values in scores_by_split.items():
        print(split, "  ".join(f"{name} {value:.3f}" for name, value in values.items()))


if __name__ == "__main__":
    script(main)
