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
from recipe_tools import RecipeError
from recipe_tools.cli import make_parser, parse_with_extra, script
from recipe_tools.commands import execute, progress, run_name, shown


def arguments(argv):
    parser = make_parser(__doc__, "data", "runs", "system", "seed", "--recipe", "--dry-run")
    parser.epilog = "What follows -- is given to fairseq-train and wins over the recipe."
    return parse_with_extra(parser, argv)


def main(argv=None):
    args = arguments(argv)
    settings = read_settings(args.recipe)
    run = args.runs / run_name(args.system, args.seed)
    command = train_command(settings, args.system, args.seed, args.data, run, args.extra)
    print(shown(command), flush=True)
    if args.dry_run:
        return
    if not (args.data / "bin").is_dir():
        raise RecipeError(f"DATA {args.data} has no folder bin; run prepare.py first")
    run.mkdir(parents=True, exist_ok=True)
    execute(command, Path(f"{run}.log"), mode="a", show=progress)
    print(f"trained: {run}")


if __name__ == "__main__":
    script(main)
