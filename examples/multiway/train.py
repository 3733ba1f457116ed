#!/usr/bin/env python3
"""Train one system of a recipe.

    python train.py DATA RUNS SYSTEM SEED [--recipe multi30k] [--dry-run] [-- fairseq options]

SYSTEM:
    multi                      every direction in one model
    single.DIRECTION           one direction, for instance single.de-en
    zero-shot                  like multi, without both directions of one pair
    multi.PERCENT.PAIR         low resource: every direction, one pair cut, both directions of it
    single.PERCENT.DIRECTION   one direction of the cut pair alone
    lm.DIRECTION               language model of the target sides of the other pairs
    df.PERCENT.DIRECTION       deep fusion of the last two, which must be trained before it
    multi.tuned and so on      fine-tuning of the shared parameters and the output layers
Checkpoints go to RUNS/SYSTEM.SEED/, the log to RUNS/SYSTEM.SEED.log. A stopped training goes on
where its last checkpoint was when the same command is given again.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from multiway_recipe.commands import best_of, train_command
from multiway_recipe.settings import read_settings
from multiway_recipe.systems import find_system
from recipe_tools.cli import script
from recipe_tools.training import train, training_arguments


def main(argv=None):
    args = training_arguments(__doc__, argv)
    settings = read_settings(args.recipe)
    system = find_system(settings, args.system)
    command = train_command(settings, system, args.seed, args.data, args.runs, args.extra)
    needed = {
        f"train.py DATA RUNS {name} {args.seed}": best_of(args.runs, name, args.seed)
        for name in system.starts_from
    }
    train(args, command, args.data / "bin" / system.folder, needed)


if __name__ == "__main__":
    script(main)
