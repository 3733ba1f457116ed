#!/usr/bin/env python3
"""The rows of Table 6: scores, significance, parameters.

    python report.py DATA RUNS SEED ... [--recipe multi30k] [--output NAME] [--into FILE.md]

Reads what evaluate.py wrote; systems that were not evaluated are left out and named at the end.
--into replaces what stands in FILE.md between these two lines:
    <!-- begin duo RECIPE -->
    <!-- end duo RECIPE -->
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from duo_translation_recipe.settings import read_settings
from duo_translation_recipe.tables import contrasts, markdown
from recipe_tools import RecipeError
from recipe_tools.cli import script
from recipe_tools.commands import run_name
from recipe_tools.evaluation import publish, read_result, report_arguments
from recipe_tools.scores import METRICS, compare


def read_results(settings, runs, seeds):
    """({(system, seed): content of scores.json}, [names of those that are not there])."""
    results, missing = {}, []
    for name in settings.systems:
        for seed in seeds:
            path = runs / run_name(name, seed) / "scores.json"
            if path.is_file():
                again = f"evaluate.py DATA RUNS {name} {seed}"
                results[name, seed] = read_result(path, settings.relevant(name), again)
            else:
                missing.append(run_name(name, seed))
    if not results:
        raise RecipeError(f"RUNS {runs} holds no scores.json of these seeds; run evaluate.py")
    return results, missing


def paired_tests(settings, data, runs, results, seeds):
    """({(direction, baseline, row): [differences and p-values, by seed]}, signatures)."""
    tests, signatures = {}, {}
    for direction in settings.directions:
        references = data / "raw" / f"test.{direction.split('-')[1]}"
        for contrast in contrasts():
            names = [f"{row}.{direction}" for row in contrast]
            for seed in seeds:
                if all((name, seed) in results for name in names):
                    file = f"test.{direction}.hyp"
                    files = [runs / run_name(name, seed) / file for name in names]
                    found, signatures = compare(*files, references)
                    tests.setdefault((direction, *contrast), []).append(found)
    return tests, signatures


def main(argv=None):
    args = report_arguments(__doc__, argv)
    settings, seeds = read_settings(args.recipe), sorted(set(args.seeds))
    results, missing = read_results(settings, args.runs, seeds)
    tests, paired = paired_tests(settings, args.data, args.runs, results, seeds)
    found = next(iter(results.values()))["signatures"]
    signatures = {METRICS[metric]: text for metric, text in found.items()}
    signatures.update({f"{name}, paired": text for name, text in paired.items()})
    text = markdown(settings, seeds, results, tests, signatures)
    data = {
        "recipe": settings.name,
        "results": {run_name(*key): result for key, result in results.items()},
        "tests": {" ".join(key): found for key, found in tests.items()},
        "missing": missing,
    }
    publish(args, text, data, f"duo {settings.name}")
    print(f"not evaluated: {', '.join(missing) or 'nothing'}")


if __name__ == "__main__":
    script(main)
