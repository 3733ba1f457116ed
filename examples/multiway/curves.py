#!/usr/bin/env python3
"""Draw how the systems learn, or how BLEU depends on the amount of data.

    python curves.py RUNS SEED ... --output FILE.png [--by updates|data] [--recipe multi30k]

--by updates: validation BLEU of multi and single.DIRECTION by updates per pair, from the logs.
--by data: test BLEU of single, long, df and multi by the percentage of the cut pair's sentences,
from what evaluate.py wrote; mean and range over the seeds. Runs that are not there are left out.
"""

import json
import statistics
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from multiway_recipe.comparisons import low_row
from multiway_recipe.settings import read_settings
from multiway_recipe.systems import find_system
from recipe_tools import RecipeError
from recipe_tools.cli import make_parser, script
from recipe_tools.commands import run_name
from recipe_tools.curves import name_axes, panels, save, validation_curve

COLOURS = {"Single": "C0", "Single, longer": "C3", "Single+DF": "C2", "Multi": "C1"}


def arguments(argv):
    parser = make_parser(__doc__, "runs", "seeds", "--recipe")
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        required=True,
        help="picture to write, such as .png or .pdf",
    )
    parser.add_argument(
        "--by",
        choices=("updates", "data"),
        default="updates",
        help="what BLEU is drawn against: updates per pair, or the size of the cut pair",
    )
    return parser.parse_args(argv)


def validation_bleu(settings, runs, seeds):
    """Return {(direction, "Single" or "Multi"): [[(updates per pair, BLEU)] by seed]}."""
    curves_by_system = {}
    for direction in settings.directions:
        for label, name in (("Single", f"single.{direction}"), ("Multi", "multi")):
            pairs = len(find_system(settings, name).pairs)
            logs = [runs / f"{run_name(name, seed)}.log" for seed in seeds]
            curves = [
                [(x / pairs, y) for x, y in validation_curve(log, f"{direction}_bleu")]
                for log in logs
                if log.is_file()
            ]
            if curves:
                curves_by_system[direction, label] = curves
    if not curves_by_system:
        raise RecipeError(f"RUNS {runs} has no log of multi or single.DIRECTION; run train.py")
    return curves_by_system


def draw_updates(settings, curves):
    """Return a picture with a panel for each direction and a curve for each system and seed."""
    shown = [
        direction for direction in settings.directions if any(direction == key[0] for key in curves)
    ]
    figure, axes = panels(shown, 3)
    for (direction, label), many in curves.items():
        for number, points in enumerate(many):
            name = None if number else label
            x, y = zip(*points)
            axes[direction].plot(x, y, color=COLOURS[label], marker="o", markersize=3, label=name)
    name_axes(axes, "updates per pair", "validation BLEU, greedy")
    return figure


def bleu_by_percent(settings, runs, seeds):
    """Return {(direction, column): {percent: [test BLEU, by seed]}} of what was evaluated."""
    values_by_system = {}
    for direction in settings.low_directions:
        pair = next(
            low_pair
            for low_pair in settings.low_pairs
            if set(low_pair.split("-")) == set(direction.split("-"))
        )
        for percent in settings.percents:
            for column, (system, key) in low_row(pair, direction, percent, 0).cells.items():
                paths = [runs / run_name(system, seed) / "scores.json" for seed in seeds]
                values = [
                    json.loads(path.read_text(encoding="utf-8"))["scores"]["test"][key]["bleu"]
                    for path in paths
                    if path.is_file()
                ]
                if values and column in COLOURS:
                    values_by_system.setdefault((direction, column), {})[percent] = values
    if not values_by_system:
        raise RecipeError(f"RUNS {runs} has no scores.json of a cut pair; run evaluate.py")
    return values_by_system


def draw_data(settings, values):
    """Return a picture with a panel for each direction of a cut pair and a line for each system."""
    shown = [
        direction
        for direction in settings.low_directions
        if any(direction == key[0] for key in values)
    ]
    figure, axes = panels(shown, 2)
    for (direction, column), by_percent in values.items():
        x = sorted(by_percent)
        means = [statistics.fmean(by_percent[percent]) for percent in x]
        ranges = [
            [mean - min(by_percent[percent]) for mean, percent in zip(means, x)],
            [max(by_percent[percent]) - mean for mean, percent in zip(means, x)],
        ]
        options = {"color": COLOURS[column], "label": column, "marker": "o", "capsize": 3}
        axes[direction].errorbar(x, means, yerr=ranges, **options)
    for panel in axes.values():
        panel.set_xscale("log")
        panel.set_xticks(settings.percents, [f"{percent}%" for percent in settings.percents])
        panel.minorticks_off()
    name_axes(axes, "sentences of the pair that were left", "test BLEU")
    return figure


def main(argv=None):
    args = arguments(argv)
    settings = read_settings(args.recipe)
    seeds = sorted(set(args.seeds))
    if args.by == "updates":
        figure = draw_updates(settings, validation_bleu(settings, args.runs, seeds))
    else:
        figure = draw_data(settings, bleu_by_percent(settings, args.runs, seeds))
    save(figure, args.output)
    print(f"written: {args.output}")


if __name__ == "__main__":
    script(main)
