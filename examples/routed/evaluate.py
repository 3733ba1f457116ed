#!/usr/bin/env python3
"""Score one trained system on the test sets: its checkpoint with the best translation perplexity.

    python evaluate.py DATA RUNS SYSTEM SEED [--recipe multi30k]

Writes into RUNS/SYSTEM.SEED/: test.PAIR.hyp (plain text, one line per sentence), scores.json and,
for a routed system, usage.tsv and the pictures of fairseq-ext router-usage.
"""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools.cli import make_parser, script
from recipe_tools.commands import user_dir
from recipe_tools.corpus import STAMP, stamp_of
from recipe_tools.evaluation import make, translate
from recipe_tools.files import written
from recipe_tools.parameters import parameters_of
from recipe_tools.scores import score, seconds_per_update
from recipe_tools.training import check_trained
from routed_recipe.commands import best_of, generate_command, train_command, usage_command
from routed_recipe.scoring import auxiliary_scores, error_rate, perplexity
from routed_recipe.settings import read_settings


def evaluate(settings, system, data, checkpoint):
    """Return ({pair: {metric: value}}, signatures) on the test sets."""
    run, inputs, scores, signatures = checkpoint.parent, [checkpoint, data / STAMP], {}, {}
    for pair in system.pairs:
        target = pair.split("-")[1]
        raw = data / "raw" / ("main" if pair == settings.main else target)
        source, references = raw / f"test.{settings.source}", raw / f"test.{target}"
        command = generate_command(settings, checkpoint, data, system, pair, "test")
        output = translate(run / f"test.{pair}.hyp", command, inputs, source)
        if pair != settings.main:
            scores[pair] = auxiliary_scores(target, output, references)
            continue
        values, signatures = score(output, references)
        values["ter"], signatures["ter"] = error_rate(output, references)
        values["ppl"] = perplexity(run / f"test.{pair}.references", command, inputs, source)
        scores[pair] = values
    return scores, signatures


def main(argv=None):
    args = make_parser(__doc__, "data", "runs", "system", "seed", "--recipe").parse_args(argv)
    settings = read_settings(args.recipe)
    system = settings.system(args.system)
    checkpoint = best_of(args.runs, args.system, args.seed)
    command = train_command(settings, args.system, args.seed, args.data, args.runs)
    check_trained(args, command, checkpoint)
    stamp_of(args.data)
    scores, signatures = evaluate(settings, system, args.data, checkpoint)
    run, folder = checkpoint.parent, args.data / "bin" / system.size
    if system.model == "routed":
        command = usage_command(checkpoint, args.data, system, run / "usage")
        make(run / "usage.tsv", command, [checkpoint, args.data / STAMP])
    seconds, updates = seconds_per_update(f"{run}.log")
    result = {
        "system": args.system,
        "seed": args.seed,
        "settings": settings.relevant(system.kind),
        "scores": scores,
        "signatures": signatures,
        "parameters": {
            "translation": parameters_of(checkpoint, folder, user_dir(), [settings.main])["used"],
            "all": parameters_of(checkpoint, folder, user_dir(), system.pairs)["used"],
        },
        "seconds_per_update": seconds,
        "updates": updates,
    }
    with written(run / "scores.json") as stream:
        json.dump(result, stream, indent=1)
    for pair, values in scores.items():
        print(pair, "  ".join(f"{name} {value:.2f}" for name, value in values.items()))


if __name__ == "__main__":
    script(main)
