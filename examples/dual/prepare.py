#!/usr/bin/env python3
"""Raw parallel text -> plain copies, joint subwords, binarised data.

    python prepare.py RAW DATA [--recipe multi30k]

RAW holds NAME.LANGUAGE or NAME.LANGUAGE.gz for the three names and two languages of the recipe.
DATA is made whole or not at all:
    raw/{train,valid,test}.LANGUAGE   the text as it came: references for scoring
    text/{train,valid,test}.LANGUAGE  subwords      sentencepiece.bpe.model or fastbpe.codes
    bin/                              what fairseq-train reads
    bin/lm.LANGUAGE/                  one side of it, for fairseq's task language_modeling
    prepared.json                     counts and the inputs; a second call with the same is a no-op
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from dual_recipe.settings import read_settings
from recipe_tools.cli import make_parser, script
from recipe_tools.corpus import describe_inputs, inputs_of, language_data, make_folder
from recipe_tools.joint import build_joint, print_counts
from recipe_tools.subwords import SUBWORDS


def arguments(argv):
    parser = make_parser(__doc__, "raw", "data", "--recipe", "--workers", "--force")
    parser.add_argument("--bpe", choices=sorted(SUBWORDS), default="sentencepiece")
    return parser.parse_args(argv)


def description(settings, bpe, inputs):
    """Return what the result depends on, as stored in the stamp."""
    return {
        "recipe": settings.name,
        "bpe": bpe,
        "vocabulary": settings.vocabulary,
        "subword_lines": settings.subword_lines,
        "train_lines": settings.train_lines,
        "language_models": list(settings.language_models.values()),
        "inputs": describe_inputs(inputs),
    }


def build(settings, bpe, inputs, folder, workers):
    """Prepare everything in `folder` and return the counts."""
    counts = build_joint(settings, bpe, inputs, folder, workers)
    for language, system in settings.language_models.items():
        language_data(folder / "bin", settings.directions[0], language, system)
    return counts


def main(argv=None):
    args = arguments(argv)
    settings = read_settings(args.recipe)
    inputs = inputs_of(settings.files, settings.languages, args.raw)
    counts = make_folder(
        args.data,
        description(settings, args.bpe, inputs),
        args.force,
        lambda folder: build(settings, args.bpe, inputs, folder, args.workers),
    )
    if counts:
        print_counts(settings, counts, args.data)


if __name__ == "__main__":
    script(main)
