#!/usr/bin/env python3
"""Raw aligned text in three or more languages -> subwords per language, binarised pairs, cuts.

    python prepare.py RAW DATA [--recipe multi30k]

RAW holds NAME.LANGUAGE or NAME.LANGUAGE.gz for the three names and all languages of the recipe;
line N of all files of one name is the same sentence. DATA is made whole or not at all:
    raw/{train,valid,test}.LANGUAGE   the text as it came: references for scoring
    text/{train,valid,test}.LANGUAGE  subwords; LANGUAGE.sentencepiece.bpe.model spells them
    bin/all/                          all pairs with all sentences, and the dictionaries
    bin/PAIR.PERCENT/                 low resource: this pair cut, the others whole
    bin/lm.DIRECTION/                 the target side of the other pairs, for language_modeling
    lines/                            which lines of raw/train each of these holds
    prepared.json                     counts and the inputs; a second call with the same is a no-op
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from multiway_recipe.corpora import make_cuts
from multiway_recipe.settings import read_settings
from recipe_tools.cli import make_parser, script
from recipe_tools.commands import execute, preprocess_command
from recipe_tools.corpus import apply_subwords, copy_plain, describe_inputs, inputs_of, make_folder
from recipe_tools.files import lines_of
from recipe_tools.subwords import SentencePiece

# fairseq's symbols in front of every dictionary: <s>, <pad>, </s>, <unk>
SPECIAL = 4


def arguments(argv):
    parser = make_parser(__doc__, "raw", "data", "--recipe", "--workers", "--force")
    return parser.parse_args(argv)


def description(settings, inputs):
    """Return what the result depends on, as stored in the stamp."""
    return {
        "recipe": settings.name,
        "bpe": "sentencepiece",
        "vocabulary": settings.vocabulary,
        "cuts": {
            "seed": settings.seed,
            "pairs": list(settings.low_pairs),
            "percent": list(settings.percents),
            "sentences": settings.share,
        },
        "inputs": describe_inputs(inputs),
    }


def learn_subwords(settings, folder, inputs):
    """Learn one model per language from all its training text; write text/ from raw/."""
    for language in settings.languages:
        path = folder / f"{language}.{SentencePiece.file}"
        SentencePiece.learn([folder / "raw" / f"train.{language}"], settings.vocabulary, 0, path)
        model = SentencePiece(path)
        for name in (
            f"{split}.{file_language}"
            for split, file_language in inputs
            if file_language == language
        ):
            apply_subwords(model, folder / "raw" / name, folder / "text" / name)


def binarise(settings, folder, workers):
    """Write bin/all: every pair, with one dictionary per language; return the dictionary sizes."""
    destination = folder / "bin" / "all"
    for pair in settings.pairs:
        command = preprocess_command(pair, settings.files, folder / "text", destination, workers)
        for side, language in zip(("src", "tgt"), pair.split("-")):
            # a language's first pair makes its dictionary
            dictionary = destination / f"dict.{language}.txt"
            command += [f"--{side}dict", dictionary] if dictionary.is_file() else []
        execute(command, folder / f"preprocess.{pair}.log")
    return {
        language: SPECIAL + sum(1 for _ in lines_of(destination / f"dict.{language}.txt"))
        for language in settings.languages
    }


def build(settings, inputs, folder, workers):
    """Prepare everything in `folder` and return the counts."""
    for name in ("raw", "text", "bin"):
        (folder / name).mkdir()
    counts = copy_plain(inputs, folder / "raw")
    learn_subwords(settings, folder, inputs)
    sizes = binarise(settings, folder, workers)
    cuts = make_cuts(settings, folder, counts["train"], sizes)
    return {**counts, "dictionaries": sizes, "cuts": cuts}


def main(argv=None):
    args = arguments(argv)
    settings = read_settings(args.recipe)
    inputs = inputs_of(settings.files, settings.languages, args.raw)
    counts = make_folder(
        args.data,
        description(settings, inputs),
        args.force,
        lambda folder: build(settings, inputs, folder, args.workers),
    )
    if counts is None:
        return
    for split, name in settings.files.items():
        print(f"{split:<6} {counts[split]:>9,} sentences of {name} in each language")
    print(f"dropped {counts['dropped']:>8,} training sentences that are empty in some language")
    for language, size in counts["dictionaries"].items():
        print(f"dictionary of {language}: {size:,} entries")
    for name, count in counts["cuts"].items():
        print(f"{name:<12} {count:>7,} training sentences")
    print(f"ready: {args.data}")


if __name__ == "__main__":
    script(main)
