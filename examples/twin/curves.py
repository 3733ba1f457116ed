#!/usr/bin/env python3
"""Draw how the systems learn (the paper's Fig. 2a): validation loss, and L_t in training.

    python curves.py RUNS SEED ... --output FILE.png --recipe digits

Runs whose log is not there are left out.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools import RecipeError
from recipe_tools.cli import make_parser, script
from recipe_tools.commands import run_name
from recipe_tools.curves import panels, save
from twin_recipe.settings import SYSTEMS, WITH_BACKWARD, read_settings
from twin_recipe.tables import TITLES

from fairseq_ext.tools import UsageError
from fairseq_ext.tools.curves.training_log import read_run

LOSS, DISTANCE = "validation loss, bits per token", "mean L_t"


def curves_of(runs, seeds):
    """Return {system: [{(set, metric): points}, by seed]}. Raises RecipeError without a log."""
    curves = {}
    for system in SYSTEMS:
        for seed in seeds:
            log = runs / f"{run_name(system, seed)}.log"
            if log.is_file():
                try:
                    curves.setdefault(system, []).append(read_run(log, log.stem).curves)
                except UsageError as error:
                    raise RecipeError(str(error)) from error
    if not curves:
        raise RecipeError(f"RUNS {runs} has no log for these seeds; run train.py")
    return curves


def draw(curves_by_system, title):
    """Draw both panels; L_t only of systems with a backward network, which share a scale."""
    figure, axes = panels([LOSS, DISTANCE], 2)
    for system, many in curves_by_system.items():
        for place, curves in enumerate(many):
            name, colour = None if place else TITLES[system], f"C{SYSTEMS.index(system)}"
            for panel, key in ((LOSS, ("valid", "loss")), (DISTANCE, ("train", "L_t"))):
                if key in curves and (panel == LOSS or system in WITH_BACKWARD):
                    axes[panel].plot(*zip(*curves[key]), color=colour, label=name)
    for panel in axes.values():
        panel.set_xlabel("updates")
        if panel.lines:
            panel.legend()
    figure.suptitle(title)
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
    settings = read_settings(args.recipe)
    save(draw(curves_of(args.runs, sorted(set(args.seeds))), settings.name), args.output)
    print(f"written: {args.output}")


if __name__ == "__main__":
    script(main)
