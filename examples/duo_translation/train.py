#!/usr/bin/env python3
"""Train one system of a recipe.

    python train.py DATA RUNS SYSTEM SEED [--recipe multi30k] [--dry-run] [-- fairseq options]

SYSTEM is ROW.DIRECTION, for instance fusion.de-en; the rows, each with all that stands above it:
    transformer  fairseq's own Transformer        norm     duo normalisation
    meta         two embeddings, two streams      fusion   fusion layer, output of both embeddings
    share        keys and values share a map      vectors  P starts from DATA/subwords.vec
Checkpoints go to RUNS/SYSTEM.SEED/, the log to RUNS/SYSTEM.SEED.log; the same command goes on with
a training that was stopped.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from duo_translation_recipe.commands import train_command, vectors_of
from duo_translation_recipe.settings import read_settings
from recipe_tools.cli import script
from recipe_tools.training import train, training_arguments


def main(argv=None):
    args = training_arguments(__doc__, argv)
    settings = read_settings(args.recipe)
    command = train_command(settings, args.system, args.seed, args.data, args.runs, args.extra)
    vectors, needed = vectors_of(settings, args.system, args.data), {}
    if vectors:
        again = f"examples/duo/own_vectors.py {vectors} {args.data}/text/train.* --width 128"
        needed[again] = vectors
    train(args, command, args.data / "bin", needed)


if __name__ == "__main__":
    script(main)
