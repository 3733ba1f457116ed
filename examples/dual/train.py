#!/usr/bin/env python3
"""Train one system of a recipe.

    python train.py DATA RUNS SYSTEM SEED [--recipe multi30k] [--dry-run] [-- fairseq options]

SYSTEM: dual (both directions in one model), stock.de-en, stock.en-de (one transformer each).
Checkpoints go to RUNS/SYSTEM.SEED/, the log to RUNS/SYSTEM.SEED.log. A stopped training goes on
where its last checkpoint was when the same command is given again.
"""

import argparse
import sys
from pathlib import Path

from dual_recipe import RecipeError
from dual_recipe.commands import execute, run_name, shown, train_command
from dual_recipe.settings import read_settings


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", metavar="DATA", type=Path, help="folder made by prepare.py")
    parser.add_argument("runs", metavar="RUNS", type=Path, help="folder of the runs")
    parser.add_argument("system", metavar="SYSTEM", help="dual, stock.SRC-TGT or stock.TGT-SRC")
    parser.add_argument("seed", metavar="SEED", type=int)
    parser.add_argument("--recipe", default="multi30k", help="name or .cfg file of the settings")
    parser.add_argument("--dry-run", action="store_true", help="print the command, do nothing")
    parser.epilog = "What follows -- is given to fairseq-train and wins over the recipe."
    # by hand: argparse gives options after -- to no positional that has begun before
    words = list(sys.argv[1:] if argv is None else argv)
    own = words[: words.index("--")] if "--" in words else words
    args = parser.parse_args(own)
    args.extra = words[len(own) + 1 :]
    return args


def progress(line):
    """Of the log of fairseq-train, the ends of epochs and the validations."""
    for mark in ("| INFO | train | ", "| INFO | valid | "):
        if mark in line:
            return mark.split(" | ")[1] + " " + line.split(mark, 1)[1].strip()
    return None


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
    try:
        main()
    except RecipeError as error:
        sys.exit(f"train.py: {error}")
