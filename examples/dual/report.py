#!/usr/bin/env python3
"""Compare the dual model with the two stock transformers over several seeds.

    python report.py DATA RUNS SEED ... [--recipe multi30k] [--output NAME] [--into FILE.md]

Reads what evaluate.py wrote. Writes NAME.md and NAME.json (default: RUNS/report); --into also
replaces what stands in FILE.md between these two lines:
    <!-- begin RECIPE -->
    <!-- end RECIPE -->
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from dual_recipe import RecipeError
from dual_recipe.commands import run_name
from dual_recipe.files import written
from dual_recipe.scores import METRICS, compare
from dual_recipe.settings import read_settings
from dual_recipe.tables import costs, markdown, summary


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", metavar="DATA", type=Path, help="folder made by prepare.py")
    parser.add_argument("runs", metavar="RUNS", type=Path, help="folder of the runs")
    parser.add_argument("seeds", metavar="SEED", type=int, nargs="+")
    parser.add_argument("--recipe", default="multi30k", help="name or .cfg file of the settings")
    parser.add_argument("--output", metavar="NAME", type=Path, help="default: RUNS/report")
    parser.add_argument("--into", metavar="FILE.md", type=Path, help="file with the marked place")
    return parser.parse_args(argv)


def read_results(settings, runs, seeds):
    """{(system, seed): content of scores.json}. Raises RecipeError naming a missing or
    outdated one.
    """
    results = {}
    for seed in seeds:
        for system in settings.systems:
            path = runs / run_name(system, seed) / "scores.json"
            if not path.is_file():
                raise RecipeError(
                    f"{path} does not exist; run evaluate.py DATA RUNS {system} {seed}"
                )
            results[system, seed] = json.loads(path.read_text(encoding="utf-8"))
            # what JSON makes of the settings: tuples become lists
            if results[system, seed]["settings"] != json.loads(json.dumps(asdict(settings))):
                raise RecipeError(
                    f"{path} was made with other settings than --recipe {settings.name} has; run "
                    f"evaluate.py DATA RUNS {system} {seed} again (before it train.py, if what "
                    "changed concerns training)"
                )
    return results


def paired_tests(settings, data, runs, seeds):
    """({(split, direction, seed): differences and p-values}, signatures)."""
    tests, signatures = {}, {}
    for split in ("valid", "test"):
        for direction in settings.directions:
            references = data / "raw" / f"{split}.{direction.split('-')[1]}"
            for seed in seeds:
                name = f"{split}.{direction}.hyp"
                stock = runs / run_name(f"stock.{direction}", seed) / name
                dual = runs / run_name("dual", seed) / name
                found, signatures = compare(stock, dual, references)
                tests[split, direction, seed] = found
    return tests, signatures


def insert(text, path, name):
    """Replace what stands between the marks of `name` in the file `path`.

    Raises RecipeError unless both marks are there, once and in order.
    """
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    if not path.is_file():
        raise RecipeError(f"--into {path} is not a file")
    old = path.read_text(encoding="utf-8")
    if old.count(begin) != 1 or old.count(end) != 1 or old.index(begin) > old.index(end):
        raise RecipeError(f"--into {path} must hold these lines, once each: {begin} and {end}")
    before, rest = old.split(begin)
    after = rest.split(end)[1]
    with written(path) as stream:
        stream.write(f"{before}{begin}\n\n{text}\n{end}{after}")


def main(argv=None):
    args = arguments(argv)
    settings = read_settings(args.recipe)
    seeds = sorted(set(args.seeds))
    results = read_results(settings, args.runs, seeds)
    table, cost = summary(settings, results), costs(settings, results)
    tests, paired = paired_tests(settings, args.data, args.runs, seeds)
    signatures = results["dual", seeds[0]]["signatures"]
    named = {METRICS[metric]: text for metric, text in signatures.items()}
    named.update({f"{name}, paired": text for name, text in paired.items()})
    text = markdown(settings, seeds, table, cost, tests, named)
    output = args.output or args.runs / "report"
    data = {
        "recipe": settings.name,
        "seeds": seeds,
        "scores": table,
        "costs": cost,
        "tests": [
            {"split": split, "direction": direction, "seed": seed, **values}
            for (split, direction, seed), values in tests.items()
        ],
        "signatures": named,
    }
    with written(output.with_name(output.name + ".json")) as stream:
        json.dump(data, stream, indent=1)
    with written(output.with_name(output.name + ".md")) as stream:
        stream.write(text)
    if args.into:
        insert(text, args.into, settings.name)
    print(text)


if __name__ == "__main__":
    try:
        main()
    except RecipeError as error:
        sys.exit(f"report.py: {error}")
