#!/usr/bin/env python3
"""Compare what was trained: tables, significance, parameters.

    python report.py DATA RUNS SEED ... [--recipe multi30k] [--output NAME] [--into FILE.md]

Reads what evaluate.py wrote; systems that were not evaluated are left out of the tables and named
at the end. Writes NAME.md and NAME.json (default: RUNS/report); --into also replaces what stands in
FILE.md between these two lines:
    <!-- begin multiway RECIPE -->
    <!-- end multiway RECIPE -->
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from multiway_recipe.comparisons import comparisons
from multiway_recipe.settings import read_settings
from multiway_recipe.systems import all_systems
from multiway_recipe.tables import markdown, missing_runs, summary
from recipe_tools.cli import script
from recipe_tools.corpus import stamp_of
from recipe_tools.evaluation import paired_by_seed, publish, read_results, report_arguments
from recipe_tools.scores import METRICS


def paired_tests(comparison, data, runs, results, seeds):
    """Return ({(row label, contrast): [differences and p, by seed]}, signatures), test set."""
    tests, signatures = {}, {}
    for row in comparison.rows:
        references = data / "raw" / f"test.{row.target}"
        for contrast in comparison.contrasts:
            cells = [row.cells[column] for column in contrast]
            places = [(system, f"test.{key}.hyp") for system, key in cells]
            by_seed, named = paired_by_seed(runs, results, places, seeds, references)
            if by_seed:
                tests[row.label, contrast], signatures = by_seed, named
    return tests, signatures


def main(argv=None):
    args = report_arguments(__doc__, argv)
    settings = read_settings(args.recipe)
    seeds = sorted(set(args.seeds))
    systems = all_systems(settings)
    results, _ = read_results(
        args.runs, systems, seeds, lambda name: settings.relevant(systems[name].sections)
    )
    compared, paired = [], {}
    for comparison in comparisons(settings, stamp_of(args.data)["counts"]["cuts"]):
        tests, signatures = paired_tests(comparison, args.data, args.runs, results, seeds)
        compared.append((comparison, tests))
        paired.update({f"{name}, paired": text for name, text in signatures.items()})
    first = next(iter(results.values()))["signatures"]
    signatures = {**{METRICS[metric]: text for metric, text in first.items()}, **paired}
    text = markdown(settings, seeds, compared, results, signatures)
    data = {
        "recipe": settings.name,
        "seeds": seeds,
        "scores": {comparison.title: summary(comparison, results) for comparison, _ in compared},
        "tests": [
            {"row": row, "contrast": contrast, "by seed": by_seed}
            for _, tests in compared
            for (row, contrast), by_seed in tests.items()
        ],
        "signatures": signatures,
        "missing": missing_runs(compared, results, seeds),
    }
    publish(args, {f"multiway {settings.name}": text}, data)
    print(f"not evaluated: {', '.join(data['missing']) or 'nothing'}")


if __name__ == "__main__":
    script(main)
