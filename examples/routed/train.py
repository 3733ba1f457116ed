#!/usr/bin/env python3
"""Train one system of a recipe.

    python train.py DATA RUNS SYSTEM SEED [--recipe multi30k] [--dry-run] [-- fairseq options]

SYSTEM is KIND.SIZE, for instance routed.5000:
    single     the translation task alone, three stacked layers
    full       all tasks, three stacked layers, everything shared
    partial    all tasks, the top two encoder layers and the top decoder layer shared
    routed     all tasks, one layer of three shared blocks, a router, and a block for each task
    unit       the same for the translation task alone
    shallow, shallow_full    as single and full, with one wider layer instead of three
    KIND_long        any of these with three times the updates
Checkpoints go to RUNS/SYSTEM.SEED/, the log to RUNS/SYSTEM.SEED.log; the same command goes on with
a training that was stopped.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools.cli import script
from recipe_tools.training import train, training_arguments
from routed_recipe.commands import train_command
from routed_recipe.settings import read_settings


def main(argv=None):
    args = training_arguments(__doc__, argv)
    settings = read_settings(args.recipe)
    command = train_command(settings, args.system, args.seed, args.data, args.runs, args.extra)
    train(args, command, args.data / "bin" / settings.system(args.system).size)


if __name__ == "__main__":
    script(main)
