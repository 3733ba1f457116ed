#!/usr/bin/env python3
"""Compare the dual model with the two stock transformers over several seeds.

    python report.py DATA RUNS SEED ... [--recipe multi30k] [--output NAME] [--into FILE.md]

Reads what evaluate.py wrote; dsl, dual.dsl, separate.inference and dual.inference are added with
the seeds for which they were evaluated.
Writes NAME.md and NAME.json (default: RUNS/report); --into also
replaces what stands in FILE.md between these two lines:
    <!-- begin RECIPE -->
    <!-- end RECIPE -->
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from dual_recipe.settings import FURTHER, RANKED, read_settings
from dual_recipe.tables import costs, markdown, summary
from recipe_tools.cli import script
from recipe_tools.commands import run_name
from recipe_tools.evaluation import publish, read_result, report_arguments
from recipe_tools.scores import METRICS, compare


def scores_file(runs, system, seed):
    return runs / run_name(system, seed) / "scores.json"


def read_results(settings, runs, seeds):
    """Return {(system, seed): content of scores.json}. RecipeError if missing or outdated."""
    runs_to_read = [(system, seed) for system in settings.systems for seed in seeds]
    runs_to_read += [
        (system, seed)
        for system in FURTHER
        for seed in seeds
        if scores_file(runs, system, seed).is_file()
    ]
    results = {}
    for system, seed in runs_to_read:
        again = f"evaluate.py DATA RUNS {system} {seed}"
        path = scores_file(runs, system, seed)
        results[system, seed] = read_result(path, settings.relevant(system), again)
    return results


def paired_tests(settings, results, data, runs):
    """Return ({(system, split, direction, seed): differences to stock and p}, signatures)."""
    tests, signatures = {}, {}
    for system, seed in results:
        if system in settings.systems[1:]:  # the stock models
            continue
        # alpha was chosen on the validation set
        for split in ("test",) if system in RANKED else ("valid", "test"):
            for direction in settings.directions:
                references = data / "raw" / f"{split}.{direction.split('-')[1]}"
                name = f"{split}.{direction}.hyp"
                stock = runs / run_name(f"stock.{direction}", seed) / name
                differences, signatures = compare(
                    stock, runs / run_name(system, seed) / name, references
                )
                tests[system, split, direction, seed] = differences
    return tests, signatures


def main(argv=None):
    args = report_arguments(__doc__, argv)
    settings = read_settings(args.recipe)
    seeds = sorted(set(args.seeds))
    results = read_results(settings, args.runs, seeds)
    table, cost = summary(settings, results), costs(settings, results)
    tests, paired = paired_tests(settings, results, args.data, args.runs)
    signatures = results["dual", seeds[0]]["signatures"]
    named = {METRICS[metric]: text for metric, text in signatures.items()}
    named.update({f"{name}, paired": text for name, text in paired.items()})
    alphas = {
        f"{system}, seed {seed}": result["alpha"]
        for (system, seed), result in results.items()
        if system in RANKED
    }
    text = markdown(settings, table, cost, tests, named, alphas)
    data = {
        "recipe": settings.name,
        "seeds": seeds,
        "scores": table,
        "costs": cost,
        "tests": [
            {"system": system, "split": split, "direction": direction, "seed": seed, **values}
            for (system, split, direction, seed), values in tests.items()
        ],
        "alphas": alphas,
        "signatures": named,
    }
    publish(args, {settings.name: text}, data)


if __name__ == "__main__":
    script(main)
