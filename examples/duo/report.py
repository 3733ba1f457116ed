#!/usr/bin/env python3
"""Tables and heat map of what couples.py and tfidf.py found on some corpora.

    python report.py RUNS [RUNS ...] --output NAME [--picture FILE.png] [--into FILE.md]

Writes NAME.md, NAME.json and the picture, NAME.png where it has no name; --into replaces what
stands in FILE.md between <!-- begin duo classifier --> and <!-- end duo classifier -->.
"""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from duo_recipe.results import all_results
from duo_recipe.tables import mean, of, section, set_names
from recipe_tools.cli import make_parser, script
from recipe_tools.curves import panels, save
from recipe_tools.evaluation import publish


def heat_maps(corpora, path):
    """Draw the mean test accuracies of all couples as colours, with a panel for each corpus."""
    figure, axes = panels(list(corpora), 3)
    for corpus, by_method in corpora.items():
        names, panel = set_names(by_method), axes[corpus]
        grid = [[float("nan")] * len(names) for _ in names]
        for row, first in enumerate(names):
            for column, second in enumerate(names[row:], start=row):
                sets = ("single", (first,)) if first == second else ("duo", (first, second))
                results = of(by_method, *sets)
                if results:
                    grid[row][column] = mean(results, "accuracy")
        panel.grid(False)
        image = panel.imshow(grid, cmap="viridis")
        for row, values in enumerate(grid):
            for column, value in enumerate(values):
                color = "k" if image.norm(value) > 0.6 else "w"  # viridis ends in bright yellow
                text = "" if value != value else f"{value:.1f}"
                panel.text(column, row, text, ha="center", va="center", color=color)
        panel.set_xticks(range(len(names)), names, rotation=45, ha="right")
        panel.set_yticks(range(len(names)), names)
        figure.colorbar(image, ax=panel, label="test accuracy, %")
    save(figure, path)


def main(argv=None):
    parser = make_parser(__doc__, "--into")
    parser.add_argument(
        "runs", metavar="RUNS", type=Path, nargs="+", help="folder of runs of couples.py"
    )
    parser.add_argument(
        "--output", metavar="NAME", type=Path, required=True, help="name of the output files"
    )
    parser.add_argument(
        "--picture", metavar="FILE", type=Path, help="heat map to write (default: NAME.png)"
    )
    args = parser.parse_args(argv)
    corpora, texts = {}, []
    for runs in args.runs:
        by_method, path = all_results(runs), runs / "tfidf.json"
        tfidf = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
        corpora[runs.name] = by_method
        texts.append(section(by_method, tfidf))
    data = {
        name: {
            f"{method}.{'+'.join(sets)}": results
            for method, by_sets in by_method.items()
            for sets, results in by_sets.items()
        }
        for name, by_method in corpora.items()
    }
    heat_maps(corpora, args.picture or args.output.with_name(args.output.name + ".png"))
    publish(args, {"duo classifier": "\n".join(texts)}, data)


if __name__ == "__main__":
    script(main)
