#!/usr/bin/env python3
"""Raw parallel text -> plain copies, joint subwords, binarised data.

    python prepare.py RAW DATA [--recipe multi30k]

RAW holds NAME.LANGUAGE or NAME.LANGUAGE.gz for the three names and two languages of the recipe.
DATA is made whole or not at all:
    raw/{train,valid,test}.LANGUAGE   the text as it came: references for scoring
    text/{train,valid,test}.LANGUAGE  subwords      sentencepiece.bpe.model or fastbpe.codes
    bin/                              what fairseq-train reads
    prepared.json                     counts and the inputs; a second call with the same is a no-op
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from dual_recipe.settings import read_settings
from recipe_tools.cli import make_parser, script
from recipe_tools.commands import execute, preprocess_command
from recipe_tools.corpus import apply_subwords, copy_plain, describe_inputs, inputs_of, make_folder
from recipe_tools.files import lines_of
from recipe_tools.subwords import SUBWORDS


def arguments(argv):
    parser = make_parser(__doc__, "raw", "data", "--recipe", "--workers", "--force")
    parser.add_argument("--bpe", choices=sorted(SUBWORDS), default="sentencepiece")
    return parser.parse_args(argv)


def description(settings, bpe, inputs):
    """What the result depends on, as stored in the stamp."""
    return {
        "recipe": settings.name,
        "bpe": bpe,
        "vocabulary": settings.vocabulary,
        "subword_lines": settings.subword_lines,
        "train_lines": settings.train_lines,
        "inputs": describe_inputs(inputs),
    }


def build(settings, bpe, inputs, folder, workers):
    """Everything, in `folder`; returns the counts."""
    for name in ("raw", "text"):
        (folder / name).mkdir()
    counts = copy_plain(inputs, folder / "raw", settings.train_lines)
    kind = SUBWORDS[bpe]
    training = [folder / "raw" / f"train.{language}" for language in settings.languages]
    kind.learn(training, settings.vocabulary, settings.subword_lines, folder / kind.file)
    model = kind(folder / kind.file)
    for split, language in inputs:
        name = f"{split}.{language}"
        apply_subwords(model, folder / "raw" / name, folder / "text" / name)
    pair = settings.directions[0]
    command = preprocess_command(pair, settings.files, folder / "text", folder / "bin", workers)
    execute([*command, "--joined-dictionary"], folder / "preprocess.log")
    counts["dictionary"] = sum(1 for _ in lines_of(folder / "bin" / f"dict.{settings.source}.txt"))
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
    if counts is None:
        return
    for split, name in settings.files.items():
        print(f"{split:<6} {counts[split]:>9,} sentence pairs ({name})")
    print(f"dropped {counts['dropped']:>8,} training pairs with an empty side")
    print(f"joint dictionary of {counts['dictionary']:,} subwords ({args.bpe})")
    print(f"ready: {args.data}")


if __name__ == "__main__":
    script(main)
