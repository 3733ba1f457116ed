#!/usr/bin/env python3
"""Score one trained system: error rate, conditional perplexity, dual inference of labels.

    python evaluate.py DATA RUNS SYSTEM SEED [--recipe imdb]

Writes into RUNS/SYSTEM.SEED/: {valid,test}.label (the most probable labels), {valid,test}.nll (nats
and tokens of each review, given its label), alpha.{png,tsv,md} (accuracy on the validation set by
alpha), {valid,test}.dual.label (labels with the best alpha) and scores.json. The dual inference of
a classifier asks the generator of the same seed. What is newer than its checkpoints and data, and
came from the same command, is not made again.
"""

import functools
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools import RecipeError
from recipe_tools.cli import make_parser, script
from recipe_tools.commands import run_name, user_dir
from recipe_tools.corpus import STAMP, stamp_of
from recipe_tools.evaluation import make, translate
from recipe_tools.files import lines_of
from recipe_tools.parameters import parameters_of
from recipe_tools.scores import seconds_per_update
from recipe_tools.training import check_trained
from sentiment_recipe.commands import (
    checkpoint_of,
    generate_command,
    train_command,
    tune_command,
)
from sentiment_recipe.scoring import (
    best_alpha,
    error_rate,
    perplexity,
    updates_of,
    write_likelihoods,
    write_result,
)
from sentiment_recipe.settings import (
    CLASSIFIER,
    GENERATOR,
    LANGUAGE_MODEL,
    read_settings,
    system_named,
)

SCORED = ("valid", "test")


class Evaluation:
    """A checkpoint and the files that its evaluation writes.

    other: the checkpoint that is asked for log P(text | label); None: the same.
    """

    def __init__(self, settings, data, checkpoint, other=None):
        self.settings, self.data, self.checkpoint, self.other = settings, data, checkpoint, other
        self.run = checkpoint.parent.parent
        self.inputs = [path for path in (checkpoint, other, data / STAMP) if path]

    def command(self, direction, split, *extra):
        return generate_command(self.settings, self.data, self.checkpoint, direction, split, extra)

    def errors(self, name, *extra):
        """Return {split: error rate} of labels, which go to SPLIT.`name`."""
        rates = {}
        for split in SCORED:
            texts, labels = (self.data / "text" / f"{split}.{kind}" for kind in ("text", "label"))
            output = self.run / f"{split}.{name}"
            translate(output, self.command(CLASSIFIER, split, *extra), self.inputs, texts)
            rates[split] = error_rate(output, labels)
        return rates

    def perplexities(self):
        """Return {split: conditional perplexity}; the likelihoods go to SPLIT.nll."""
        by_split = {}
        for split in SCORED:
            output = self.run / f"{split}.nll"
            count = sum(1 for _ in lines_of(self.data / "text" / f"{split}.text"))
            finish = functools.partial(write_likelihoods, output, count)
            make(output, self.command(GENERATOR, split, "--score-reference"), self.inputs, finish)
            by_split[split] = perplexity(output)
        return by_split

    def alpha(self):
        """Return the alpha with the fewest validation errors, and the options that give l_g."""
        words = ["--dual-path", self.other] if self.other else []
        output = self.run / "alpha.png"
        command = tune_command(self.settings, self.data, self.checkpoint, output, words)
        make(output.with_suffix(".tsv"), command, self.inputs)
        return best_alpha(output.with_suffix(".tsv")), words


def scores_of(system, evaluation):
    """Return {"error", "perplexity", "dual_error": {split: value}, "alpha"} where they exist."""
    scores = {}
    if CLASSIFIER in system.directions:
        scores["error"] = evaluation.errors("label")
        alpha, words = evaluation.alpha()
        scores["alpha"] = alpha
        ranking = ["--dual-alpha", alpha, *words] if float(alpha) < 1 else []
        scores["dual_error"] = evaluation.errors("dual.label", *ranking)
    if GENERATOR in system.directions:
        scores["perplexity"] = evaluation.perplexities()
    return scores


def main(argv=None):
    parser = make_parser(__doc__, "data", "runs", "system", "seed", "--recipe")
    parser.set_defaults(recipe="imdb")
    args = parser.parse_args(argv)
    if args.system == LANGUAGE_MODEL:
        raise RecipeError(
            f"SYSTEM {LANGUAGE_MODEL} is a language model and is not evaluated; "
            "its perplexity is in "
            f"{args.runs / run_name(args.system, args.seed)}.log"
        )
    settings, system = read_settings(args.recipe), system_named(args.system)
    checkpoint, other = checkpoint_of(args.runs, args.system, args.seed), None
    if system.directions == (CLASSIFIER,):
        other = checkpoint_of(args.runs, "generator", args.seed)
    for name, path in ((args.system, checkpoint), ("generator", other)):
        if path:
            run, stage = args.runs / run_name(name, args.seed), settings.stages[-1]
            command = train_command(settings, name, args.seed, args.data, run, stage)
            check_trained(args, command, path)
    stamp_of(args.data)
    scores = scores_of(system, Evaluation(settings, args.data, checkpoint, other))
    run = args.runs / run_name(args.system, args.seed)
    logs = [run / f"{stage.name}.log" for stage in settings.stages]
    result = {
        "recipe": settings.name,
        "system": args.system,
        "seed": args.seed,
        "settings": settings.relevant(args.system),
        "scores": scores,
        "parameters": parameters_of(checkpoint, args.data / "bin", user_dir(), system.directions),
        # the second stage is too short to be timed by epochs, and an update of it is as long
        "seconds_per_update": seconds_per_update(logs[0])[0],
        "updates": [updates_of(log) for log in logs],
    }
    write_result(run / "scores.json", result)
    for name, values in scores.items():
        shown = values.items() if isinstance(values, dict) else [("valid", values)]
        print(name, "  ".join(f"{split} {value:.2f}" for split, value in shown), flush=True)
    print(f"written: {run / 'scores.json'}")


if __name__ == "__main__":
    script(main)
