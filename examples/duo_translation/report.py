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
from recipe_tools.cli import script
from recipe_tools.commands import run_name
from recipe_tools.evaluation import paired_by_seed, publish, read_results, report_arguments
from recipe_tools.scores import METRICS


def paired_tests(settings, data, runs, results, seeds):
    """Return ({(direction, baseline, row): [differences and p-values, by seed]}, signatures)."""
    tests, signatures = {}, {}
    for direction in settings.directions:
        references = data / "raw" / f"test.{direction.split('-')[1]}"
        for contrast in contrasts():
            places = [(f"{row}.{direction}", f"test.{direction}.hyp") for row in contrast]
            by_seed, named = paired_by_seed(runs, results, places, seeds, references)
            if by_seed:
                tests[(direction, *contrast)], signatures = by_seed, named
    return tests, signatures


def main(argv=None):
    args = report_arguments(__doc__, argv)
    settings, seeds = read_settings(args.recipe), sorted(set(args.seeds))
    results, missing = read_results(args.runs, settings.systems, seeds, settings.relevant)
    tests, paired = paired_tests(settings, args.data, args.runs, results, seeds)
    first_signatures = next(iter(results.values()))["signatures"]
    signatures = {METRICS[metric]: text for metric, text in first_signatures.items()}
    signatures.update({f"{name}, paired": text for name, text in paired.items()})
    text = markdown(settings, seeds, results, tests, signatures)
    data = {
        "recipe": settings.name,
        "results": {run_name(*key): result for key, result in results.items()},
        "tests": {" ".join(key): by_seed for key, by_seed in tests.items()},
        "missing": missing,
    }
    publish(args, {f"duo {settings.name}": text}, data)
    print(f"not evaluated: {', '.join(missing) or 'nothing'}")


if __name__ == "__main__":
    script(main)
