#!/usr/bin/env python3
"""Train one system in two stages: until the validation loss stands still, then plain SGD.

    python train.py DATA RUNS SYSTEM SEED [--recipe imdb] [--dry-run] [-- fairseq options]

SYSTEM:
    dual                    both directions in one model
    classifier, generator   one direction each
    lm.text                 a language model of the reviews, for the next two; it has one stage
    dsl                     a classifier and a generator tied by dual supervised learning
    dual.dsl                the dual model with dual supervised learning
Checkpoints go to RUNS/SYSTEM.SEED/{first,second}/, the logs to {first,second}.log beside them (of
lm.text to RUNS/lm.text.SEED/ and RUNS/lm.text.SEED.log). A stopped training goes on where its last
checkpoint was when the same command is given again.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools.cli import script
from recipe_tools.commands import best_of, language_model_command, run_name
from recipe_tools.training import check_command, train, training_arguments
from sentiment_recipe.commands import train_command
from sentiment_recipe.settings import LANGUAGE_MODEL, read_settings, system_named


def main(argv=None):
    args = training_arguments(__doc__, argv, recipe="imdb")
    settings = read_settings(args.recipe)
    run = args.runs / run_name(args.system, args.seed)
    if args.system == LANGUAGE_MODEL:
        part, folder = settings.further["language_model"], args.data / "bin" / LANGUAGE_MODEL
        train(args, language_model_command(part, folder, args.seed, run, args.extra), folder)
        return
    needed = {}
    if system_named(args.system).supervised:
        again = f"train.py DATA RUNS {LANGUAGE_MODEL} {args.seed}"
        needed[again] = best_of(args.runs, LANGUAGE_MODEL, args.seed)
    for stage in settings.stages:
        command = train_command(settings, args.system, args.seed, args.data, run, stage, args.extra)
        # a stage that patience has ended would go on if it were called again
        finished = run / stage.name / "finished"
        if finished.exists():
            if not args.dry_run:
                check_command(args, command, run / stage.name)
            print(f"finished: {run / stage.name}")
            continue
        train(args, command, args.data / "bin", needed, run=run / stage.name)
        if not args.dry_run:
            finished.touch()


if __name__ == "__main__":
    script(main)
