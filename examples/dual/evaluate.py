#!/usr/bin/env python3
"""Average, translate and score one trained system.

    python evaluate.py DATA RUNS SYSTEM SEED [--recipe multi30k]

Writes into RUNS/SYSTEM.SEED/: average.pt, {valid,test}.SRC-TGT.hyp (plain text, one line per
sentence) and scores.json. What is newer than the checkpoints and data, and came from the same
command, is not made again.
"""

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path

from dual_recipe import RecipeError
from dual_recipe.commands import (
    average_command,
    execute,
    generate_command,
    run_name,
    shown,
    user_dir,
)
from dual_recipe.files import lines_of, written
from dual_recipe.parameters import parameters_of
from dual_recipe.scores import METRICS, score, seconds_per_epoch, translations
from dual_recipe.settings import read_settings
from dual_recipe.subwords import SUBWORDS


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", metavar="DATA", type=Path, help="folder made by prepare.py")
    parser.add_argument("runs", metavar="RUNS", type=Path, help="folder of the runs")
    parser.add_argument("system", metavar="SYSTEM", help="dual, stock.SRC-TGT or stock.TGT-SRC")
    parser.add_argument("seed", metavar="SEED", type=int)
    parser.add_argument("--recipe", default="multi30k", help="name or .cfg file of the settings")
    return parser.parse_args(argv)


def subword_options(data):
    """What makes fairseq-generate print plain text."""
    stamp = data / "prepared.json"
    if not stamp.is_file():
        raise RecipeError(f"DATA {data} has no prepared.json; run prepare.py first")
    name = json.loads(stamp.read_text(encoding="utf-8"))["bpe"]
    kind = SUBWORDS[name]
    return ["--bpe", name, kind.flag, data / kind.file]


def make(output, command, inputs, finish=None):
    """Run `command`, which makes `output`, unless that was done; returns seconds, or None.

    It was done when `output` is newer than all `inputs` and came from the same command line, which
    is kept beside it. finish: function log -> None that makes `output` from what was printed.
    """
    record, text = Path(f"{output}.command"), shown(command) + "\n"
    newest = max(path.stat().st_mtime for path in inputs)
    if output.is_file() and output.stat().st_mtime > newest and record.is_file():
        if record.read_text(encoding="utf-8") == text:
            return None
    print(text, end="", flush=True)
    record.unlink(missing_ok=True)
    started, log = time.monotonic(), Path(f"{output}.log")
    execute(command, log)
    if finish:
        finish(log)
    with written(record) as stream:
        stream.write(text)
    return time.monotonic() - started


def average(settings, run):
    """Path of the averaged checkpoint."""
    last, output = run / "checkpoint_last.pt", run / "average.pt"
    if not last.is_file():
        raise RecipeError(f"{last} does not exist; run train.py first")
    make(output, average_command(settings, run, output), [last])
    return output


def translate(settings, args, checkpoint, direction, split):
    """File of translations of one split in one direction."""
    output = checkpoint.parent / f"{split}.{direction}.hyp"
    options = subword_options(args.data)
    command = generate_command(
        settings, args.system, checkpoint, args.data, direction, split, options
    )
    source = args.data / "raw" / f"{split}.{direction.split('-')[0]}"
    count = sum(1 for _ in lines_of(source))

    def finish(log):
        with written(output) as stream:
            stream.writelines(line + "\n" for line in translations(log, count))

    seconds = make(output, command, [checkpoint, args.data / "prepared.json"], finish)
    if seconds is not None:
        print(f"{count} sentences in {seconds:.0f} s: {output}", flush=True)
    return output


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
            hypotheses = translate(settings, args, checkpoint, direction, split)
            references = args.data / "raw" / f"{split}.{direction.split('-')[1]}"
            scores[split][direction], signatures = score(hypotheses, references)
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
    try:
        main()
    except RecipeError as error:
        sys.exit(f"evaluate.py: {error}")
