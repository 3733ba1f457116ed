#!/usr/bin/env python3
"""Train the classifiers of all couples of a list of word vectors: the paper's Tables 2 - 4.

    python couples.py DATA RUNS --set glove50=FILE --set w2v=FILE [--seeds 1 2 3] [-- OPTIONS]

Each set alone, and each couple as duo, average and concatenation, once for each seed. What is done
is not done again, and what another process of the same command works on is left to it: start it
twice to use two cores. OPTIONS go to fairseq-train and win over those of the recipe, e.g.
-- --duo-attention softmax.
    RUNS/METHOD.FIRST+SECOND.SEED/    logs, scores.json; the checkpoint goes when it is scored
report.py makes the tables.
"""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from duo_recipe.forked import commands, execute
from duo_recipe.results import SCORES, claimed, scores_of_test, stored_result, training_facts
from duo_recipe.systems import (
    METHODS,
    named_files,
    settings_of,
    systems,
    train_command,
    validate_command,
)
from recipe_tools.cli import make_parser, parse_with_extra, script
from recipe_tools.commands import run_name
from recipe_tools.corpus import stamp_of
from recipe_tools.files import written


def arguments(argv):
    parser = make_parser(__doc__, "data", "runs")
    parser.add_argument(
        "--set",
        action="append",
        required=True,
        metavar="NAME=FILE",
        help="name and file of a set of word vectors; may be given several times",
    )
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=list(range(1, 11)), help="seeds (default: 1 to 10)"
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=METHODS,
        default=METHODS,
        help="ways to combine the vectors (default: all)",
    )
    return parse_with_extra(parser, argv)


def train_and_test(functions, args, files, system, seed):
    """Train and test a system; return the content of its scores.json."""
    folder = args.runs / run_name(system.name, seed)
    command = train_command(args.data, args.runs, files, system, seed, args.extra)
    execute(functions, command, folder / "train.log")
    checkpoint = folder / "checkpoint_best.pt"
    execute(functions, validate_command(args.data, checkpoint), folder / "test.log")
    checkpoint.unlink()
    stamp = stamp_of(args.data)
    return {
        "system": system.name,
        "seed": seed,
        "settings": settings_of(stamp, system, files, args.extra),
        **scores_of_test(folder / "test.log"),
        **training_facts(folder / "train.log"),
    }


def main(argv=None):
    args = arguments(argv)
    files, stamp, left = named_files(args.set), stamp_of(args.data), []
    for seed in args.seeds:
        for system in systems(files, args.methods):
            settings = settings_of(stamp, system, files, args.extra)
            if stored_result(args.runs / run_name(system.name, seed), settings) is None:
                left.append((system, seed))
    functions = commands() if left else {}
    for system, seed in left:
        folder = args.runs / run_name(system.name, seed)
        with claimed(folder) as mine:
            if not mine or stored_result(folder):
                continue
            result = train_and_test(functions, args, files, system, seed)
            with written(folder / SCORES) as stream:
                json.dump(result, stream, indent=1)
        print(f"{folder.name}: accuracy {result['accuracy']:.2f}", flush=True)


if __name__ == "__main__":
    script(main)
