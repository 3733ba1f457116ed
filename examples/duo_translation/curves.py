#!/usr/bin/env python3
"""Draw how fast the rows of Table 6 converge: validation BLEU and perplexity by epoch.

    python curves.py RUNS SEED ... --output FILE.png [--recipe multi30k] [--into FILE.md]

Means over the seeds; runs whose log is not there are left out. --into also replaces what stands in
FILE.md between these two lines by a table of the same numbers:
    <!-- begin curves duo RECIPE -->
    <!-- end curves duo RECIPE -->
"""

import statistics
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from duo_translation_recipe.settings import ROWS, read_settings
from duo_translation_recipe.tables import curve_table
from recipe_tools import RecipeError
from recipe_tools.cli import make_parser, script
from recipe_tools.commands import run_name
from recipe_tools.curves import name_axes, panels, save, validation_curve
from recipe_tools.scores import whole_epochs
from recipe_tools.tables import insert

METRICS = {"bleu": "BLEU", "ppl": "perplexity"}


def mean_curve(logs, metric):
    """Return [(epoch, mean over the logs)] of the updates at which all of them were validated."""
    epochs, _, _ = whole_epochs(logs[0])
    length = max(updates for _, updates in epochs.values())  # the last epoch may be cut off
    curves = [dict(validation_curve(log, metric)) for log in logs]
    return [
        (updates / length, statistics.fmean(curve[updates] for curve in curves))
        for updates in sorted(set.intersection(*map(set, curves)))
    ]


def curves_of(settings, runs, seeds):
    """Return {direction: {row: {metric: [(epoch, mean)]}}}. Raises RecipeError without a log."""
    by_direction = {}
    for direction in settings.directions:
        for row in ROWS:
            logs = [runs / f"{run_name(f'{row}.{direction}', seed)}.log" for seed in seeds]
            logs = [log for log in logs if log.is_file()]
            if logs:
                curves = {metric: mean_curve(logs, metric) for metric in METRICS}
                by_direction.setdefault(direction, {})[row] = curves
    if not by_direction:
        raise RecipeError(f"RUNS {runs} has no log for these seeds; run train.py")
    return by_direction


def draw(curves):
    """Return a picture with a panel for each direction and metric and a curve for each row."""
    names = [f"{direction}, {name}" for direction in curves for name in METRICS.values()]
    figure, axes = panels(names, 2)
    for direction, by_row in curves.items():
        for metric, name in METRICS.items():
            panel = axes[f"{direction}, {name}"]
            for row, by_metric in by_row.items():
                colour = f"C{list(ROWS).index(row)}"
                panel.plot(*zip(*by_metric[metric]), color=colour, marker="o", label=ROWS[row][0])
            if metric == "ppl":
                panel.set_yscale("log")
    name_axes(axes, "epoch", "validation set")
    return figure


def main(argv=None):
    parser = make_parser(__doc__, "runs", "seeds", "--recipe", "--into")
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        required=True,
        help="picture to write, such as .png or .pdf",
    )
    args = parser.parse_args(argv)
    settings = read_settings(args.recipe)
    curves = curves_of(settings, args.runs, sorted(set(args.seeds)))
    save(draw(curves), args.output)
    text = curve_table(curves)
    if args.into:
        insert(text, args.into, f"curves duo {settings.name}")
    print(text)


if __name__ == "__main__":
    script(main)
