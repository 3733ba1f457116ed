#!/usr/bin/env python3
"""BLEU against the number of layers: the dual model and the two stock transformers (Fig. 5).

    python depth.py RUNS SEED ... --output FILE.png [--recipe multi30k] [--into FILE.md]

Reads what evaluate.py wrote of dual, stock.SRC-TGT and of all dual@N, stock.SRC-TGT@N that are in
RUNS. Draws one panel for each direction and prints a table; --into also replaces what stands in
FILE.md between these two lines by the table:
    <!-- begin depth RECIPE -->
    <!-- end depth RECIPE -->
"""

import statistics
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from dual_recipe.pictures import COLOURS, arguments
from dual_recipe.settings import read_settings
from recipe_tools import RecipeError
from recipe_tools.cli import script
from recipe_tools.commands import run_name
from recipe_tools.curves import name_axes, panels, save
from recipe_tools.evaluation import read_result
from recipe_tools.tables import cell, insert, rows, spread


def depths_of(settings, runs, seeds):
    """Return the evaluated numbers of layers, the recipe's among them, in order.

    Raises RecipeError where it is the only one.
    """
    depths = {settings.sizes["layers"]}
    for kind in settings.systems:
        for seed in seeds:
            for path in runs.glob(f"{kind}@*.{seed}/scores.json"):
                depth = path.parent.name[len(kind) + 1 : -len(f".{seed}")]
                depths |= {int(depth)} if depth.isdigit() else set()
    if len(depths) == 1:
        raise RecipeError(
            f"{runs} has results for only one number of layers; run train.py and evaluate.py "
            "of dual@N and "
            f"{', '.join(f'{kind}@N' for kind in settings.systems[1:])} with another N first"
        )
    return sorted(depths)


def read_results(settings, runs, seeds, depth):
    """Return {(system, seed): content of scores.json} of one number of layers.

    Raises RecipeError, with what to run, for a missing or outdated one.
    """
    results = {}
    for kind in settings.systems:
        system = kind if depth == settings.sizes["layers"] else f"{kind}@{depth}"
        depth_settings = settings.at_depth(system)
        for seed in seeds:
            again = f"evaluate.py DATA RUNS {system} {seed}"
            path = runs / run_name(system, seed) / "scores.json"
            results[kind, seed] = read_result(path, depth_settings.relevant(system), again)
    return results


def summary(settings, results, seeds):
    """Return {"parameters": {system: count}, direction: {system: [BLEU, ..]}} of stock and dual."""

    def unique(*kinds):
        return sum(results[kind, seeds[0]]["parameters"]["unique"] for kind in kinds)

    stocks = settings.systems[1:]
    table = {"parameters": {"stock": unique(*stocks), "dual": unique("dual")}}
    for direction in settings.directions:
        table[direction] = {
            label: [results[kind, seed]["scores"]["test"][direction]["bleu"] for seed in seeds]
            for label, kind in (("stock", f"stock.{direction}"), ("dual", "dual"))
        }
    return table


def draw(settings, tables):
    """Return a picture with a panel for each direction: the means as a curve, a point per seed."""
    figure, axes = panels(settings.directions, 2)
    for direction, panel in axes.items():
        for label, colour in COLOURS.items():
            values = [table[direction][label] for table in tables.values()]
            means = [statistics.fmean(scores) for scores in values]
            panel.plot(list(tables), means, color=colour, label=label)
            for depth, scores in zip(tables, values):
                panel.plot([depth] * len(scores), scores, "o", color=colour, markersize=3)
        panel.set_xticks(list(tables))
    name_axes(axes, "layers", f"BLEU, {settings.files['test']}")
    return figure


def depth_table(settings, tables):
    """Return Markdown: parameters, mean and range over seeds, and the gain of the dual model."""
    header, body = ["layers", "parameters, both stock", "dual"], []
    for direction in settings.directions:
        header += [f"{direction} stock", "dual", "dual - stock"]
    for depth, table in tables.items():
        cells = [f"{table['parameters'][label]:,}" for label in COLOURS]
        for direction in settings.directions:
            values = {label: spread(table[direction][label]) for label in COLOURS}
            gain = values["dual"]["mean"] - values["stock"]["mean"]
            cells += [*(cell(values[label]) for label in COLOURS), f"{gain:+.2f}"]
        body.append([depth, *cells])
    return rows(header, body)


def main(argv=None):
    args = arguments(__doc__, argv)
    settings, seeds = read_settings(args.recipe), sorted(set(args.seeds))
    tables = {
        depth: summary(settings, read_results(settings, args.runs, seeds, depth), seeds)
        for depth in depths_of(settings, args.runs, seeds)
    }
    save(draw(settings, tables), args.output)
    text = (
        f"Recipe `{settings.name}`, BLEU of {settings.files['test']}; seeds "
        f"{', '.join(map(str, seeds))}; mean (range) over seeds. The columns `dual - stock` have "
        f"the difference of the means.\n\n{depth_table(settings, tables)}"
    )
    if args.into:
        insert(text, args.into, f"depth {settings.name}")
    print(text)


if __name__ == "__main__":
    script(main)
