#!/usr/bin/env python3
"""Compare the systems over several seeds.

    python report.py DATA RUNS SEED ... [--recipe imdb] [--output NAME] [--into FILE.md]

Reads what evaluate.py wrote; dsl and dual.dsl are added where they were evaluated. Writes NAME.md
and NAME.json (default: RUNS/report); --into also replaces what stands in FILE.md between these two
lines:
    <!-- begin RECIPE -->
    <!-- end RECIPE -->
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools.cli import script
from recipe_tools.commands import run_name
from recipe_tools.evaluation import publish, read_result, report_arguments
from sentiment_recipe.scoring import mcnemar, mistakes
from sentiment_recipe.settings import SYSTEMS, read_settings
from sentiment_recipe.tables import ROWS, markdown, summary

COUPLES = (
    ("dual", "classifier"),
    ("dsl", "classifier"),
    ("dual", "dsl"),
    ("dual.dsl", "dual"),
    ("dual + dual inference", "dual"),
    ("dual + dual inference", "classifier + dual inference"),
)
FILES = {"error": "test.label", "dual_error": "test.dual.label"}


def read_results(settings, runs, seeds):
    """Return {(system, seed): content of scores.json}. RecipeError if one is missing or outdated.

    Of the systems that are `supervised` those that were evaluated.
    """

    def scores(system, seed):
        return runs / run_name(system, seed) / "scores.json"

    compared = [
        name
        for name, system in SYSTEMS.items()
        if not system.supervised or any(scores(name, seed).is_file() for seed in seeds)
    ]
    return {
        (system, seed): read_result(
            scores(system, seed),
            settings.relevant(system),
            f"evaluate.py DATA RUNS {system} {seed}",
        )
        for seed in seeds
        for system in compared
    }


def paired_tests(table, data, runs, seeds):
    """Return {(row, row, seed): (difference of the error rates, p)} of the test set."""
    tests, references = {}, data / "text" / "test.label"
    for couple in COUPLES:
        if not set(couple) <= set(table):
            continue
        for seed in seeds:
            both = []
            for row in couple:
                system, labels = ROWS[row]
                both.append(mistakes(runs / run_name(system, seed) / FILES[labels], references))
            difference = 100 * (sum(both[0]) - sum(both[1])) / len(both[0])
            tests[(*couple, seed)] = (difference, mcnemar(*both))
    return tests


def main(argv=None):
    args = report_arguments(__doc__, argv, recipe="imdb")
    settings, seeds = read_settings(args.recipe), sorted(set(args.seeds))
    results = read_results(settings, args.runs, seeds)
    table = summary(results)
    tests = paired_tests(table, args.data, args.runs, seeds)
    text = markdown(settings, seeds, table, results, tests)
    data = {
        "recipe": settings.name,
        "seeds": seeds,
        "scores": table,
        "tests": [[*key, *values] for key, values in tests.items()],
    }
    publish(args, {settings.name: text}, data)


if __name__ == "__main__":
    script(main)
