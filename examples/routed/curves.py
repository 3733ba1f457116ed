#!/usr/bin/env python3
"""Draw how the systems learn: validation perplexity of the translation task by updates.

    python curves.py RUNS SEED ... --output FILE.png [--recipe multi30k]

One panel for each size, those with three times the updates dashed; runs whose log is not there are
left out.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools import RecipeError
from recipe_tools.cli import make_parser, script
from recipe_tools.commands import run_name
from recipe_tools.curves import name_axes, panels, save, validation_curve
from routed_recipe.settings import KINDS, LONG, read_settings


def curves_of(settings, runs, seeds):
    """Return {size: {kind: [points, by seed]}}. Raises RecipeError when there is no log."""
    by_size = {}
    for size in settings.sizes:
        for kind in KINDS:
            for seed in seeds:
                log = runs / f"{run_name(f'{kind}.{size}', seed)}.log"
                if log.is_file():
                    points = validation_curve(log, f"{settings.main}_ppl")
                    by_size.setdefault(size, {}).setdefault(kind, []).append(points)
    if not by_size:
        raise RecipeError(f"RUNS {runs} has no log for these seeds; run train.py")
    return by_size


def draw(curves):
    """Return the picture of what ``curves_of`` returns."""
    figure, axes = panels(list(curves), 3)
    for size, by_kind in curves.items():
        for kind, many in by_kind.items():
            for place, points in enumerate(many):
                label, colour = None if place else kind, f"C{KINDS.index(LONG.get(kind, kind))}"
                line = "--" if kind in LONG else "-"
                axes[size].plot(*zip(*points), line, color=colour, label=label)
        axes[size].set_yscale("log")
        axes[size].yaxis.set_major_formatter("{x:g}")
        axes[size].yaxis.set_minor_formatter("{x:g}")
    name_axes(axes, "updates", "validation perplexity")
    return figure


def main(argv=None):
    parser = make_parser(__doc__, "runs", "seeds", "--recipe")
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        required=True,
        help="picture to write, such as .png or .pdf",
    )
    args = parser.parse_args(argv)
    curves = curves_of(read_settings(args.recipe), args.runs, sorted(set(args.seeds)))
    save(draw(curves), args.output)
    print(f"written: {args.output}")


if __name__ == "__main__":
    script(main)
