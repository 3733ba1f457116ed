#!/usr/bin/env python3
"""Translate and score one trained system: its best checkpoint, on the validation and test set.

    python evaluate.py DATA RUNS SYSTEM SEED [--recipe multi30k]

Writes into RUNS/SYSTEM.SEED/: {valid,test}.SRC-TGT.hyp (plain text, one line per sentence; with
SRC-PIVOT-TGT in two steps), {valid,test}.SRC-TGT.likelihood (of the references, one number per
sentence, natural logarithm) and scores.json. What is newer than the checkpoint and data, and came
from the same command, is not made again.
"""

import json
import statistics
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from multiway_recipe.commands import (
    best_of,
    generate_command,
    interactive_command,
    train_command,
)
from multiway_recipe.settings import read_settings
from multiway_recipe.systems import find_system
from recipe_tools import RecipeError
from recipe_tools.cli import make_parser, script
from recipe_tools.commands import user_dir
from recipe_tools.corpus import STAMP, stamp_of
from recipe_tools.evaluation import make, translate
from recipe_tools.files import lines_of, written
from recipe_tools.parameters import parameters_of
from recipe_tools.scores import METRICS, log_likelihoods, score, seconds_per_update
from recipe_tools.subwords import SentencePiece
from recipe_tools.training import check_trained

SPLITS = ("valid", "test")


def arguments(argv):
    return make_parser(__doc__, "data", "runs", "system", "seed", "--recipe").parse_args(argv)


class Evaluation:
    """The files and scores of one checkpoint."""

    def __init__(self, settings, data, checkpoint):
        self.settings, self.data, self.checkpoint = settings, data, checkpoint
        self.run = checkpoint.parent
        self.inputs = [checkpoint, data / STAMP]

    def text(self, split, language):
        return self.data / "raw" / f"{split}.{language}"

    def subwords(self, language):
        """Return the options that spell text of `language` and print plain text."""
        model = self.data / f"{language}.{SentencePiece.file}"
        return ["--bpe", "sentencepiece", SentencePiece.flag, model]

    def translated(self, split, direction):
        """Return the file of translations from the binarised set."""
        source = direction.split("-")[0]
        command = generate_command(
            self.settings, self.checkpoint, self.data, direction, split, self.subwords(source)
        )
        output = self.run / f"{split}.{direction}.hyp"
        return translate(output, command, self.inputs, self.text(split, source))

    def pivoted(self, split, direction):
        """Return the file of translations of the translations into the pivot language."""
        source, target = direction.split("-")
        pivot = self.settings.pivot
        first = self.translated(split, f"{source}-{pivot}")
        command = interactive_command(
            self.settings,
            self.checkpoint,
            self.data,
            f"{pivot}-{target}",
            first,
            self.subwords(pivot),
        )
        output = self.run / f"{split}.{source}-{pivot}-{target}.hyp"
        return translate(output, command, [*self.inputs, first], first)

    def likelihood(self, split, direction):
        """Return the mean log-probability of the references per sentence, natural logarithm."""
        source, target = direction.split("-")
        command = generate_command(
            self.settings, self.checkpoint, self.data, direction, split, self.subwords(source)
        )
        output = self.run / f"{split}.{direction}.likelihood"
        count = sum(1 for _ in lines_of(self.text(split, target)))

        def finish(log):
            with written(output) as stream:
                stream.writelines(f"{value:.4f}\n" for value in log_likelihoods(log, count))

        make(output, [*command, "--score-reference"], self.inputs, finish)
        return statistics.fmean(map(float, lines_of(output)))

    def scores(self, split, direction, pivoted=False):
        """Return ({metric: value}, signatures); the likelihood is of the direct translation."""
        make_file = self.pivoted if pivoted else self.translated
        target = direction.split("-")[1]
        values, signatures = score(make_file(split, direction), self.text(split, target))
        if not pivoted:
            values["likelihood"] = self.likelihood(split, direction)
        name = f"{direction} by {self.settings.pivot}" if pivoted else direction
        labels = {**METRICS, "likelihood": "log-likelihood"}
        text = "  ".join(f"{labels[metric]} {value:.2f}" for metric, value in values.items())
        print(f"{self.settings.files[split]} {name}  {text}", flush=True)
        return values, signatures


def evaluate(settings, system, evaluation):
    """Return ({split: {direction (or through the pivot): {metric: value}}}, signatures)."""
    scores, signatures = {}, {}
    for split in SPLITS:
        scores[split] = {}
        for direction in system.directions:
            scores[split][direction], signatures = evaluation.scores(split, direction)
        for direction in system.pivoted:
            name = direction.replace("-", f"-{settings.pivot}-")
            scores[split][name], _ = evaluation.scores(split, direction, pivoted=True)
    return scores, signatures


def main(argv=None):
    args = arguments(argv)
    settings = read_settings(args.recipe)
    system = find_system(settings, args.system)
    if not system.directions:
        raise RecipeError(
            f"SYSTEM {args.system} is a language model and does not translate; "
            "its perplexity is in "
            f"{args.runs / args.system}.{args.seed}.log"
        )
    checkpoint = best_of(args.runs, args.system, args.seed)
    command = train_command(settings, system, args.seed, args.data, args.runs)
    check_trained(args, command, checkpoint)
    stamp_of(args.data)
    scores, signatures = evaluate(settings, system, Evaluation(settings, args.data, checkpoint))
    seconds, updates = seconds_per_update(f"{checkpoint.parent}.log")
    folder = args.data / "bin" / "all"
    result = {
        "recipe": settings.name,
        "system": args.system,
        "seed": args.seed,
        "settings": settings.relevant(system.sections),
        "scores": scores,
        "signatures": signatures,
        "parameters": parameters_of(checkpoint, folder, user_dir(), system.pairs),
        "seconds_per_update": seconds,
        "updates": updates,
    }
    with written(checkpoint.parent / "scores.json") as stream:
        json.dump(result, stream, indent=1)
    print(f"written: {checkpoint.parent / 'scores.json'}")


if __name__ == "__main__":
    script(main)
