#!/usr/bin/env python3
"""Train one system: Adadelta until the validation loss stands still, then plain SGD.

    python train.py DATA RUNS SYSTEM SEED [--recipe imdb] [--dry-run] [-- fairseq options]

SYSTEM: dual (both directions in one model), classifier, generator (one direction each).
Checkpoints go to RUNS/SYSTEM.SEED/{adadelta,sgd}/, the logs to {adadelta,sgd}.log beside them. A
stopped training goes on where its last checkpoint was when the same command is given again.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools.cli import script
from recipe_tools.commands import run_name
from recipe_tools.training import train, training_arguments
from sentiment_recipe.commands import train_command
from sentiment_recipe.settings import read_settings


def main(argv=None):
    args = training_arguments(__doc__, argv, recipe="imdb")
    settings = read_settings(args.recipe)
    run = args.runs / run_name(args.system, args.seed)
    for stage in settings.stages:
        # a stage that patience has ended would go on if it were called again
        finished = run / stage.name / "finished"
        if finished.exists():
            continue
        command = train_command(settings, args.system, args.seed, args.data, run, stage, args.extra)
        train(args, command, args.data / "bin", run=run / stage.name)
        if not args.dry_run:
            finished.touch()


if __name__ == "__main__":
    script(main)
