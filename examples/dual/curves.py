#!/usr/bin/env python3
"""Draw how the dual model and the two stock transformers learn: validation loss by epoch.

    python curves.py RUNS SEED ... --output FILE.png [--recipe multi30k] [--into FILE.md]

--into also replaces what stands in FILE.md between these two lines by a table of the same numbers:
    <!-- begin curves RECIPE -->
    <!-- end curves RECIPE -->
"""

import statistics
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from dual_recipe.pictures import COLOURS, arguments
from dual_recipe.settings import read_settings
from recipe_tools.cli import script
from recipe_tools.commands import run_name
from recipe_tools.curves import name_axes, panels, save, validation_curve
from recipe_tools.tables import insert, rows


def validation_losses(settings, runs, seeds):
    """Return {(direction, "stock" or "dual"): [nll in bits after each epoch, for each seed]}."""
    losses = {}
    for direction in settings.directions:
        for system, run, metric in (
            ("stock", f"stock.{direction}", "nll_loss"),
            ("dual", "dual", f"{direction}_nll_loss"),
        ):
            for seed in seeds:
                log = runs / f"{run_name(run, seed)}.log"
                values = [value for _, value in validation_curve(log, metric)]
                losses.setdefault((direction, system), []).append(values)
    return losses


def draw(settings, losses):
    """Return a picture with a panel for each direction and a curve for each system and seed."""
    figure, axes = panels(settings.directions, 2)
    for direction, panel in axes.items():
        for system, colour in COLOURS.items():
            for seed, values in enumerate(losses[direction, system]):
                label = None if seed else system
                epochs = range(1, len(values) + 1)
                panel.plot(epochs, values, color=colour, marker="o", markersize=3, label=label)
    name_axes(axes, "epoch", "validation nll, bits per token")
    return figure


def table(settings, losses):
    """Return Markdown: the means over seeds by epoch, and the gap of the dual model."""
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
    args = arguments(__doc__, argv)
    settings = read_settings(args.recipe)
    losses = validation_losses(settings, args.runs, sorted(set(args.seeds)))
    save(draw(settings, losses), args.output)
    text = table(settings, losses)
    if args.into:
        insert(text, args.into, f"curves {settings.name}")
    print(text)


if __name__ == "__main__":
    script(main)
