#!/usr/bin/env python3
"""Raw parallel text -> plain copies, joint subwords, binarised data for both directions.

    python prepare.py RAW DATA [--recipe multi30k]

RAW holds NAME.LANGUAGE or NAME.LANGUAGE.gz for the three names and two languages of the recipe.
DATA is made whole or not at all:
    raw/{train,valid,test}.LANGUAGE   the text as it came: references for scoring
    text/{train,valid,test}.LANGUAGE  subwords      sentencepiece.bpe.model
    bin/                              what fairseq-train reads
    prepared.json                     counts and the inputs; a second call with the same is a no-op
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from duo_translation_recipe.settings import read_settings
from recipe_tools.cli import make_parser, script
from recipe_tools.corpus import describe_inputs, inputs_of, make_folder
from recipe_tools.joint import build_joint, print_counts


def main(argv=None):
    parser = make_parser(__doc__, "raw", "data", "--recipe", "--workers", "--force")
    args = parser.parse_args(argv)
    settings = read_settings(args.recipe)
    inputs = inputs_of(settings.files, settings.languages, args.raw)
    description = {
        "recipe": settings.name,
        "data": settings.text["data"],
        "inputs": describe_inputs(inputs),
    }
    counts = make_folder(
        args.data,
        description,
        args.force,
        lambda folder: build_joint(settings, "sentencepiece", inputs, folder, args.workers),
    )
    if counts:
        print_counts(settings, counts, args.data)


if __name__ == "__main__":
    script(main)
