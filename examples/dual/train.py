#!/usr/bin/env python3
"""Train one system of a recipe.

    python train.py DATA RUNS SYSTEM SEED [--recipe multi30k] [--dry-run] [-- fairseq options]

SYSTEM: dual (both directions in one model), stock.de-en, stock.en-de (one transformer each).
Checkpoints go to RUNS/SYSTEM.SEED/, the log to RUNS/SYSTEM.SEED.log. A stopped training goes on
where its last checkpoint was when the same command is given again.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from dual_recipe.commands import train_command
from dual_recipe.settings import read_settings
from recipe_tools.cli import script
from recipe_tools.commands import run_name
from recipe_tools.training import train, training_arguments


def main(argv=None):
    args = training_arguments(__doc__, argv)
    settings = read_settings(args.recipe)
    run = args.runs / run_name(args.system, args.seed)
    command = train_command(settings, args.system, args.seed, args.data, run, args.extra)
    train(args, command, args.data / "bin")


if __name__ == "__main__":
    script(main)
