#!/usr/bin/env python3
"""Train one system of a recipe.

    python train.py DATA RUNS SYSTEM SEED --recipe digits [--dry-run] [-- fairseq options]

SYSTEM is a row of the paper's Table 1:
    baseline    the forward network alone
    noise       its states are drawn to Gaussian noise
    norm        the norm of its state is to stay what it was (Krueger and Memisevic 2015)
    zeros       its states are drawn to zero (activation regularisation, Merity et al. 2017)
    identity    its states are drawn to those of a backward network
    learnt      the same through a learnt affine map
Checkpoints go to RUNS/SYSTEM.SEED/, the log to RUNS/SYSTEM.SEED.log; the same command goes on with
a training that was stopped.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools.cli import script
from recipe_tools.training import train, training_arguments
from twin_recipe.commands import train_command
from twin_recipe.settings import read_settings


def main(argv=None):
    args = training_arguments(__doc__, argv)
    settings = read_settings(args.recipe)
    settings.check_system(args.system)
    command = train_command(settings, args.system, args.seed, args.data, args.runs, args.extra)
    train(args, command, args.data / "bin")


if __name__ == "__main__":
    script(main)
