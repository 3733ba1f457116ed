#!/usr/bin/env python3
"""The archive of the Large Movie Review Dataset -> tokens, labels, binarised data.

    python prepare.py ARCHIVE DATA [--recipe imdb]

ARCHIVE is aclImdb_v1.tar.gz; only its labelled reviews are read. DATA is made whole or not at all:
    text/{train,valid,test}.{text,label}   a review and its label a line
    bin/                                   what fairseq-train reads
    bin/lm.text/                           the reviews of it, for fairseq's task language_modeling
    prepared.json                          counts and the inputs; a second call is a no-op
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools import RecipeError
from recipe_tools.cli import make_parser, script
from recipe_tools.commands import execute, preprocess_command
from recipe_tools.corpus import language_data, make_folder
from recipe_tools.files import digest, written
from recipe_tools.settings import SPLITS
from sentiment_recipe.corpus import read_reviews, split_off
from sentiment_recipe.settings import CLASSIFIER, LABEL, LANGUAGE_MODEL, TEXT, read_settings


def arguments(argv):
    parser = make_parser(__doc__, "raw", "data", "--recipe", "--workers", "--force")
    parser.set_defaults(recipe="imdb")
    return parser.parse_args(argv)


def build(settings, archive, folder, workers):
    """Prepare everything in `folder` and return the counts."""
    reviews = read_reviews(archive, settings.words)
    splits = {"test": reviews["test"]}
    splits["valid"], splits["train"] = split_off(reviews["train"], settings.valid)
    (folder / "text").mkdir()
    counts = {}
    for split in SPLITS:
        for kind, place in ((LABEL, 1), (TEXT, 2)):
            with written(folder / "text" / f"{split}.{kind}") as stream:
                stream.writelines(review[place] + "\n" for review in splits[split])
        counts[split] = len(splits[split])
        counts[f"{split}_words"] = sum(len(review[2].split()) for review in splits[split])
    command = preprocess_command(CLASSIFIER, SPLITS, folder / "text", folder / "bin", workers)
    # fairseq counts its four special entries among the words
    command += ["--nwordssrc", settings.vocabulary + 4]
    execute(command, folder / "preprocess.log")
    language_data(folder / "bin", CLASSIFIER, TEXT, LANGUAGE_MODEL)
    return counts


def main(argv=None):
    args = arguments(argv)
    settings = read_settings(args.recipe)
    if not args.raw.is_file():
        raise RecipeError(f"RAW {args.raw} is not a file; it must be the archive")
    description = {
        **{key: getattr(settings, key) for key in ("valid", "words", "vocabulary")},
        "language_models": [LANGUAGE_MODEL],
        "archive": digest(args.raw),
    }
    counts = make_folder(
        args.data,
        description,
        args.force,
        lambda folder: build(settings, args.raw, folder, args.workers),
    )
    if counts is None:
        return
    for split in SPLITS:
        print(f"{split:<6} {counts[split]:>7,} reviews, {counts[f'{split}_words']:>10,} words")
    print(f"ready: {args.data}")


if __name__ == "__main__":
    script(main)
