#!/usr/bin/env python3
"""Average, translate and score one trained system.

    python evaluate.py DATA RUNS SYSTEM SEED [--recipe multi30k]

Writes into RUNS/SYSTEM.SEED/: average.pt, {valid,test}.SRC-TGT.hyp (plain text, one line per
sentence) and scores.json. What is newer than the checkpoints and data, and came from the same
command, is not made again.
"""

import dataclasses
import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from dual_recipe.commands import average_command, generate_command
from dual_recipe.settings import read_settings
from recipe_tools import RecipeError
from recipe_tools.cli import make_parser, script
from recipe_tools.commands import run_name, user_dir
from recipe_tools.corpus import STAMP, stamp_of
from recipe_tools.evaluation import make, translate
from recipe_tools.files import written
from recipe_tools.parameters import parameters_of
from recipe_tools.scores import METRICS, score, seconds_per_epoch
from recipe_tools.subwords import SUBWORDS


def arguments(argv):
    return make_parser(__doc__, "data", "runs", "system", "seed", "--recipe").parse_args(argv)


def subword_options(data):
    """What makes fairseq-generate print plain text."""
    name = stamp_of(data)["bpe"]
    kind = SUBWORDS[name]
    return ["--bpe", name, kind.flag, data / kind.file]


def average(settings, run):
    """Path of the averaged checkpoint."""
    last, output = run / "checkpoint_last.pt", run / "average.pt"
    if not last.is_file():
        raise RecipeError(f"{last} does not exist; run train.py first")
    make(output, average_command(settings, run, output), [last])
    return output


def hypotheses(settings, args, checkpoint, direction, split):
    """File of translations of one split in one direction."""
    output = checkpoint.parent / f"{split}.{direction}.hyp"
    command = generate_command(
        settings, args.system, checkpoint, args.data, direction, split, subword_options(args.data)
    )
    source = args.data / "raw" / f"{split}.{direction.split('-')[0]}"
    return translate(output, command, [checkpoint, args.data / STAMP], source)


def main(argv=None):
    args = arguments(argv)
    settings = read_settings(args.recipe)
    directions = settings.directions_of(args.system)
    run = args.runs / run_name(args.system, args.seed)
    checkpoint = average(settings, run)
    scores, signatures = {}, {}
    for split in ("valid", "test"):
        scores[split] = {}
        for direction in directions:
            output = hypotheses(settings, args, checkpoint, direction, split)
            references = args.data / "raw" / f"{split}.{direction.split('-')[1]}"
            scores[split][direction], signatures = score(output, references)
            values = scores[split][direction]
            text = "  ".join(f"{METRICS[name]} {value:.2f}" for name, value in values.items())
            print(f"{settings.files[split]} {direction}  {text}", flush=True)
    seconds, epochs = seconds_per_epoch(f"{run}.log")
    result = {
        "recipe": settings.name,
        "system": args.system,
        "seed": args.seed,
        "settings": dataclasses.asdict(settings),
        "scores": scores,
        "signatures": signatures,
        "parameters": parameters_of(checkpoint, args.data / "bin", user_dir(), directions),
        "seconds_per_epoch": seconds,
        "epochs": epochs,
    }
    with written(run / "scores.json") as stream:
        json.dump(result, stream, indent=1)
    print(f"written: {run / 'scores.json'}")


if __name__ == "__main__":
    script(main)
