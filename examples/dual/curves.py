#!/usr/bin/env python3
"""Draw how the dual model and the two stock transformers learn: validation loss by epoch.

    python curves.py RUNS SEED ... --output FILE.png [--recipe multi30k] [--into FILE.md]

--into also replaces what stands in FILE.md between these two lines by a table of the same numbers:
    <!-- begin curves RECIPE -->
    <!-- end curves RECIPE -->
"""

import argparse
import statistics
import sys
from pathlib import Path

from dual_recipe import RecipeError
from dual_recipe.commands import run_name
from dual_recipe.settings import read_settings
from dual_recipe.tables import rows
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from report import insert

from fairseq_ext.tools import UsageError, atomic_path
from fairseq_ext.tools.training_log import read_run

COLOURS = {"stock": "C0", "dual": "C1"}


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", metavar="RUNS", type=Path, help="folder of the runs")
    parser.add_argument("seeds", metavar="SEED", type=int, nargs="+")
    parser.add_argument("--output", metavar="FILE", type=Path, required=True, help=".png, .pdf ...")
    parser.add_argument("--recipe", default="multi30k", help="name or .cfg file of the settings")
    parser.add_argument("--into", metavar="FILE.md", type=Path, help="file with the marked place")
    return parser.parse_args(argv)


def validation_losses(settings, runs, seeds):
    """{(direction, "stock" or "dual"): [the nll in bits after each epoch, for each seed]}."""
    found = {}
    for direction in settings.directions:
        for system, run, metric in (
            ("stock", f"stock.{direction}", "nll_loss"),
            ("dual", "dual", f"{direction}_nll_loss"),
        ):
            for seed in seeds:
                log = runs / f"{run_name(run, seed)}.log"
                points = read_run(log, system).curves.get(("valid", metric))
                if points is None:
                    raise RecipeError(f"{log} has no validation with {metric}")
                values = [value for _, value in points]
                found.setdefault((direction, system), []).append(values)
    return found


def draw(settings, losses):
    """One panel for each direction, one curve for each system and seed."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    for number, direction in enumerate(settings.directions, start=1):
        axes = figure.add_subplot(1, len(settings.directions), number)
        for system, colour in COLOURS.items():
            for seed, values in enumerate(losses[direction, system]):
                label = None if seed else system
                epochs = range(1, len(values) + 1)
                axes.plot(epochs, values, color=colour, marker="o", markersize=3, label=label)
        axes.set_title(direction)
        axes.set_xlabel("epoch")
        axes.set_ylabel("validation nll, bits per token")
        axes.grid(alpha=0.3)
        axes.legend()
    return figure


def table(settings, losses):
    """Markdown: mean over seeds by epoch, and how far the dual model is behind."""
    epochs = min(len(values) for curves in losses.values() for values in curves)
    header, columns = ["epoch"], []
    for direction in settings.directions:
        header += [f"{direction} stock", "dual", "dual - stock"]
        means = {
            system: [
                statistics.fmean(values[epoch] for values in losses[direction, system])
                for epoch in range(epochs)
            ]
            for system in COLOURS
        }
        gaps = [dual - stock for dual, stock in zip(means["dual"], means["stock"])]
        columns += [
            [f"{value:.3f}" for value in means["stock"]],
            [f"{value:.3f}" for value in means["dual"]],
            [f"{gap:+.3f}" for gap in gaps],
        ]
    return rows(header, [[epoch + 1, *cells] for epoch, cells in enumerate(zip(*columns))])


def main(argv=None):
    args = arguments(argv)
    settings = read_settings(args.recipe)
    losses = validation_losses(settings, args.runs, sorted(set(args.seeds)))
    with atomic_path(args.output) as temporary:
        draw(settings, losses).savefig(temporary, dpi=110)
    text = table(settings, losses)
    if args.into:
        insert(text, args.into, f"curves {settings.name}")
    print(text)


if __name__ == "__main__":
    try:
        main()
    except (RecipeError, UsageError) as error:
        sys.exit(f"curves.py: {error}")
