#!/usr/bin/env python3
"""Compare what was trained: tables, significance, parameters, time.

    python report.py DATA RUNS SEED ... --recipe digits [--output NAME] [--into FILE.md]

Reads what evaluate.py wrote; systems that were not evaluated are left out and named at the end.
--into replaces what stands in FILE.md between <!-- begin twin RECIPE --> and
<!-- end twin RECIPE -->.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools.cli import script
from recipe_tools.commands import run_name
from recipe_tools.evaluation import publish, read_results, report_arguments
from twin_recipe.scoring import compare
from twin_recipe.settings import read_settings
from twin_recipe.tables import markdown


def paired_tests(settings, data, runs, results, seeds):
    """Return {(system, compared system, metric): result of `compare`}."""
    tests, references = {}, data / "raw" / "test.ref"
    for system, other in settings.contrasts:
        both = [seed for seed in seeds
                if all((name, seed) in results for name in (other, system))]  # fmt: skip
        for metric in settings.kind.METRICS if both else ():
            test = compare(metric, runs, other, system, both, references)
            tests[system, other, metric.name] = test
    return tests


def main(argv=None):
    args = report_arguments(__doc__, argv)
    settings, seeds = read_settings(args.recipe), sorted(set(args.seeds))
    again = f" --recipe {settings.name}"
    results, missing = read_results(args.runs, settings.systems, seeds, settings.relevant, again)
    tests = paired_tests(settings, args.data, args.runs, results, seeds)
    data = {
        "recipe": settings.name,
        "results": {run_name(*key): result for key, result in results.items()},
        "tests": {
            f"{system} - {other}, {name}": test for (system, other, name), test in tests.items()
        },
        "missing": missing,
    }
    text = markdown(settings, seeds, results, tests)
    publish(args, {f"twin {settings.name}": text}, data)
    print(f"not evaluated: {', '.join(missing) or 'nothing'}")


if __name__ == "__main__":
    script(main)
