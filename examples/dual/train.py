#!/usr/bin/env python3
"""Train one system of a recipe.

    python train.py DATA RUNS SYSTEM SEED [--recipe multi30k] [--dry-run] [-- fairseq options]

SYSTEM:
    dual                       both directions in one model
    stock.de-en, stock.en-de   one transformer each
    lm.de, lm.en               language models of the two sides, for the next two
    dsl                        two transformers tied by dual supervised learning
    dual.dsl                   the dual model with dual supervised learning
    dual@2, stock.de-en@6 ...  the first three with another number of layers
Checkpoints go to RUNS/SYSTEM.SEED/, the log to RUNS/SYSTEM.SEED.log. A stopped training goes on
where its last checkpoint was when the same command is given again.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from dual_recipe.commands import train_command
from dual_recipe.settings import RANKED, read_settings
from recipe_tools import RecipeError
from recipe_tools.cli import script
from recipe_tools.commands import best_of, run_name
from recipe_tools.training import train, training_arguments


def main(argv=None):
    args = training_arguments(__doc__, argv)
    settings = read_settings(args.recipe).at_depth(args.system)
    if args.system in RANKED:
        raise RecipeError(
            f"SYSTEM {args.system} is not trained: evaluate.py reranks hypotheses of other systems"
        )
    run = args.runs / run_name(args.system, args.seed)
    command = train_command(settings, args.system, args.seed, args.data, run, args.extra)
    models = settings.language_models.values()
    folder = args.data / "bin" / (args.system if args.system in models else "")
    needed = {
        f"train.py DATA RUNS {name} {args.seed}": best_of(args.runs, name, args.seed)
        for name in (models if args.system.endswith("dsl") else ())
    }
    train(args, command, folder, needed)


if __name__ == "__main__":
    script(main)
