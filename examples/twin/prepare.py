#!/usr/bin/env python3
"""Raw data -> the folder that the systems are trained on.

    python prepare.py RAW DATA --recipe digits

RAW holds the files that the recipe names. DATA is made whole or not at all:
    bin/             what fairseq-train reads
    raw/SPLIT.ref    references, a line for each item of the validation and test sets
    prepared.json    counts and the inputs; a second call with the same is a no-op
"""

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools import RecipeError
from recipe_tools.cli import make_parser, script
from recipe_tools.corpus import make_folder
from recipe_tools.files import digest
from twin_recipe.settings import read_settings

from fairseq_ext.tools import UsageError


def main(argv=None):
    parser = make_parser(__doc__, "raw", "data", "--recipe", "--workers", "--force")
    args = parser.parse_args(argv)
    settings, root = read_settings(args.recipe), Path(os.path.abspath(args.data))
    files = settings.kind.files(settings, args.raw)
    description = {
        "recipe": settings.name,
        "data": settings.data,
        "inputs": {name: digest(path) for name, path in files.items()},
    }

    def build(folder):
        (folder / "raw").mkdir()
        return settings.kind.build(settings, files, folder, root, args.workers)

    try:
        counts = make_folder(args.data, description, args.force, build)
    except UsageError as error:
        raise RecipeError(str(error)) from error
    for name, count in (counts or {}).items():
        print(f"{name:<8} {count:>8,}")


if __name__ == "__main__":
    script(main)
