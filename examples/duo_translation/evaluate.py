#!/usr/bin/env python3
"""Translate and score one trained system on the validation and the test set.

    python evaluate.py DATA RUNS SYSTEM SEED [--recipe multi30k]

Writes into RUNS/SYSTEM.SEED/: {valid,test}.DIRECTION.hyp (plain text, one line per sentence) and
scores.json. What is newer than the checkpoint and data, and came from the same command, is not made
again.
"""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from duo_translation_recipe.commands import generate_command, last_of, train_command
from duo_translation_recipe.settings import read_settings
from recipe_tools.cli import make_parser, script
from recipe_tools.commands import user_dir
from recipe_tools.corpus import STAMP, stamp_of
from recipe_tools.curves import validation_curve
from recipe_tools.evaluation import translate
from recipe_tools.files import written
from recipe_tools.parameters import parameters_of
from recipe_tools.scores import METRICS, score, seconds_per_update
from recipe_tools.training import check_trained


def main(argv=None):
    args = make_parser(__doc__, "data", "runs", "system", "seed", "--recipe").parse_args(argv)
    settings = read_settings(args.recipe)
    _, direction = settings.parts(args.system)
    checkpoint = last_of(args.runs, args.system, args.seed)
    command = train_command(settings, args.system, args.seed, args.data, args.runs)
    check_trained(args, command, checkpoint)
    stamp_of(args.data)
    run, scores, signatures = checkpoint.parent, {}, {}
    source, target = direction.split("-")
    for split in ("valid", "test"):
        output, raw = run / f"{split}.{direction}.hyp", args.data / "raw"
        command = generate_command(settings, checkpoint, args.data, direction, split)
        inputs = [checkpoint, args.data / STAMP]
        translate(output, command, inputs, raw / f"{split}.{source}")
        scores[split], signatures = score(output, raw / f"{split}.{target}")
        text = "  ".join(f"{METRICS[name]} {value:.2f}" for name, value in scores[split].items())
        print(f"{settings.files[split]} {args.system}  {text}", flush=True)
    log = Path(f"{run}.log")
    seconds, updates = seconds_per_update(log)
    result = {
        "system": args.system,
        "seed": args.seed,
        "settings": settings.relevant(args.system),
        "scores": scores,
        "signatures": signatures,
        "perplexity": validation_curve(log, "ppl")[-1][1],
        "parameters": parameters_of(checkpoint, args.data / "bin", user_dir(), [direction]),
        "seconds_per_update": seconds,
        "updates": updates,
    }
    with written(run / "scores.json") as stream:
        json.dump(result, stream, indent=1)
    print(f"written: {run / 'scores.json'}")


if __name__ == "__main__":
    script(main)
