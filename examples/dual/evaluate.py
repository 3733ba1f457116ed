#!/usr/bin/env python3
"""Average, translate and score one trained system.

    python evaluate.py DATA RUNS SYSTEM SEED [--recipe multi30k]

SYSTEM is as in train.py, or dual.inference: what the search of the system dual finds, ranked by
both directions with the alpha that is best on the validation set; or separate.inference: the same
with the two stock models.
Writes into RUNS/SYSTEM.SEED/: average.pt, {valid,test}.SRC-TGT.hyp (plain text, one line per
sentence) and scores.json; of dual inference also the curves alpha.SRC-TGT.{png,md,tsv}. What is
newer than the checkpoints and data, and came from the same command, is not made again.
"""

import json
import sys
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from dual_recipe.commands import average_command, generate_command, train_command, tune_command
from dual_recipe.settings import RANKED, read_settings
from recipe_tools import RecipeError
from recipe_tools.cli import make_parser, script
from recipe_tools.commands import run_name, user_dir
from recipe_tools.corpus import STAMP, stamp_of
from recipe_tools.evaluation import make, translate
from recipe_tools.files import lines_of, written
from recipe_tools.parameters import parameters_of
from recipe_tools.scores import METRICS, score, seconds_per_epoch
from recipe_tools.subwords import SUBWORDS
from recipe_tools.training import check_trained


def arguments(argv):
    return make_parser(__doc__, "data", "runs", "system", "seed", "--recipe").parse_args(argv)


def subword_options(data):
    """Return the options that make fairseq-generate print plain text."""
    name = stamp_of(data)["bpe"]
    kind = SUBWORDS[name]
    return ["--bpe", name, kind.flag, data / kind.file]


def average(settings, run):
    """Average the last checkpoints and return the path of the result."""
    output = run / "average.pt"
    make(output, average_command(settings, run, output), [run / "checkpoint_last.pt"])
    return output


def models_of(settings, args, directions):
    """Return {direction: (searching checkpoint, options that name the other one of the reranker)}.

    Raises RecipeError for what is not trained.
    """
    trained, paths = RANKED.get(args.system, args.system), {}
    for direction in directions:
        name = trained.format(direction)
        run = args.runs / run_name(name, args.seed)
        command = train_command(settings, name, args.seed, args.data, run)
        check_trained(args, command, run / "checkpoint_last.pt")
        paths[direction] = average(settings, run)
    opposite = dict(zip(directions, reversed(directions)))
    separate = len(set(paths.values())) > 1
    others = {
        direction: ["--dual-path", paths[opposite[direction]]] if separate else []
        for direction in paths
    }
    return {direction: (path, others[direction]) for direction, path in paths.items()}


def tuned_alpha(settings, args, model, run, direction):
    """Return the alpha of Eq. 7 that is best on the validation set; curve and table go to `run`."""
    picture, (checkpoint, other) = run / f"alpha.{direction}.png", model
    options = [*other, *subword_options(args.data)]
    command = tune_command(settings, checkpoint, args.data, direction, picture, options)
    make(picture, command, [checkpoint, *other[1:], args.data / STAMP])
    *_, last = lines_of(f"{picture}.log")
    return last.split()[-1]


def hypotheses(settings, args, model, run, direction, split, alpha):
    """Return the file of translations of a split; alpha: of dual inference, or None."""
    output, (checkpoint, other) = run / f"{split}.{direction}.hyp", model
    options = subword_options(args.data)
    if alpha is not None and float(alpha) < 1:  # 1 is plain beam search
        options += [*other, "--dual-alpha", alpha]
    command = generate_command(
        settings, args.system, checkpoint, args.data, direction, split, options
    )
    source = args.data / "raw" / f"{split}.{direction.split('-')[0]}"
    return translate(output, command, [checkpoint, *other[1:], args.data / STAMP], source)


def scores_of(settings, args, models, run, alphas):
    """Return ({split: {direction: {metric: value}}}, signatures)."""
    scores, signatures = {}, {}
    for split in ("valid", "test"):
        scores[split] = {}
        for direction, model in models.items():
            alpha = alphas.get(direction)
            output = hypotheses(settings, args, model, run, direction, split, alpha)
            references = args.data / "raw" / f"{split}.{direction.split('-')[1]}"
            scores[split][direction], signatures = score(output, references)
            values = scores[split][direction]
            text = "  ".join(f"{METRICS[name]} {value:.2f}" for name, value in values.items())
            print(f"{settings.files[split]} {direction}  {text}", flush=True)
    return scores, signatures


def parameters(args, models):
    """Return the parameters of all checkpoints together."""
    total = Counter()
    for checkpoint in dict.fromkeys(path for path, _ in models.values()):
        directions = [direction for direction, (path, _) in models.items() if path == checkpoint]
        total.update(parameters_of(checkpoint, args.data / "bin", user_dir(), directions))
    return dict(total)


def main(argv=None):
    args = arguments(argv)
    settings = read_settings(args.recipe).at_depth(args.system)
    directions = settings.directions_of(args.system)
    if not directions:
        raise RecipeError(
            f"SYSTEM {args.system} is a language model and does not translate; "
            "its perplexity is in "
            f"{args.runs / run_name(args.system, args.seed)}.log"
        )
    run, alphas = args.runs / run_name(args.system, args.seed), {}
    models = models_of(settings, args, directions)
    if args.system in RANKED:
        run.mkdir(exist_ok=True)
        alphas = {
            direction: tuned_alpha(settings, args, model, run, direction)
            for direction, model in models.items()
        }
    scores, signatures = scores_of(settings, args, models, run, alphas)
    logs = dict.fromkeys(f"{path.parent}.log" for path, _ in models.values())
    seconds, epochs = zip(*map(seconds_per_epoch, logs))
    result = {
        "recipe": settings.name,
        "system": args.system,
        "seed": args.seed,
        "settings": settings.relevant(args.system),
        "alpha": alphas,
        "scores": scores,
        "signatures": signatures,
        "parameters": parameters(args, models),
        "seconds_per_epoch": sum(seconds),
        "epochs": epochs[0],
    }
    with written(run / "scores.json") as stream:
        json.dump(result, stream, indent=1)
    print(f"written: {run / 'scores.json'}")


if __name__ == "__main__":
    script(main)
