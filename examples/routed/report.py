#!/usr/bin/env python3
"""Compare what was trained: tables, significance, parameters.

    python report.py DATA RUNS SEED ... [--recipe multi30k] [--output NAME] [--into FILE.md]

Reads what evaluate.py wrote; systems that were not evaluated are left out and named at the end.
--into replaces what stands in FILE.md, for every SIZE of which there are results, between
<!-- begin routed RECIPE SIZE --> and <!-- end routed RECIPE SIZE -->.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools.cli import script
from recipe_tools.commands import run_name
from recipe_tools.evaluation import paired_by_seed, publish, read_results, report_arguments
from routed_recipe.settings import KINDS, read_settings
from routed_recipe.tables import CONTRASTS, markdown


def paired_tests(settings, data, runs, results, seeds):
    """Return ({(system, baseline): [differences and p-values, by seed]}, signatures)."""
    tests, signatures = {}, {}
    references = data / "raw" / "main" / f"test.{settings.target}"
    for size in settings.sizes:
        for contrast in CONTRASTS:
            names = [f"{kind}.{size}" for kind in contrast]
            places = [(name, f"test.{settings.main}.hyp") for name in names]
            by_seed, named = paired_by_seed(runs, results, places, seeds, references)
            if by_seed:
                tests[names[1], names[0]], signatures = by_seed, named
    return tests, signatures


def main(argv=None):
    args = report_arguments(__doc__, argv)
    settings, seeds = read_settings(args.recipe), sorted(set(args.seeds))
    names = [f"{kind}.{size}" for size in settings.sizes for kind in KINDS]
    results, missing = read_results(
        args.runs, names, seeds, lambda name: settings.relevant(name.split(".")[0])
    )
    tests, paired = paired_tests(settings, args.data, args.runs, results, seeds)
    first_signatures, parts = next(iter(results.values()))["signatures"], {}
    of_tests = {f"{name}, paired": text for name, text in paired.items()}
    for size in settings.sizes:
        some = {key: result for key, result in results.items() if key[0].endswith(f".{size}")}
        if some:
            few = {names: test for names, test in tests.items() if names[0].endswith(f".{size}")}
            text = markdown(
                settings, seeds, some, few, {**first_signatures, **(of_tests if few else {})}
            )
            parts[f"routed {settings.name} {size}"] = text
    data = {
        "recipe": settings.name,
        "results": {run_name(*key): result for key, result in results.items()},
        "tests": {" - ".join(names): by_seed for names, by_seed in tests.items()},
        "missing": missing,
    }
    publish(args, parts, data)
    print(f"not evaluated: {', '.join(missing) or 'nothing'}")


if __name__ == "__main__":
    script(main)
