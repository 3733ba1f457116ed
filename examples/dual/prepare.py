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

import argparse
import itertools
import json
import os
import shutil
import sys
from pathlib import Path

from dual_recipe import RecipeError
from dual_recipe.commands import execute, preprocess_command
from dual_recipe.files import digest, find, lines_of, pairs_of, written
from dual_recipe.settings import read_settings
from dual_recipe.subwords import SUBWORDS

STAMP = "prepared.json"
CHUNK = 10000


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("raw", metavar="RAW", type=Path, help="folder of the raw text")
    parser.add_argument("data", metavar="DATA", type=Path, help="folder to make")
    parser.add_argument("--recipe", default="multi30k", help="name or .cfg file of the settings")
    parser.add_argument("--bpe", choices=sorted(SUBWORDS), default="sentencepiece")
    parser.add_argument("--workers", type=int, default=2, help="of fairseq-preprocess")
    parser.add_argument("--force", action="store_true", help="replace DATA made from other inputs")
    return parser.parse_args(argv)


def inputs_of(settings, raw):
    """{(split, language): raw file}."""
    if not raw.is_dir():
        raise RecipeError(f"RAW {raw} is not a folder")
    return {
        (split, language): find(raw, stem, language)
        for split, stem in settings.files.items()
        for language in settings.languages
    }


def description(settings, bpe, inputs):
    """What the result depends on, as stored in the stamp."""
    return {
        "recipe": settings.name,
        "bpe": bpe,
        "vocabulary": settings.vocabulary,
        "subword_lines": settings.subword_lines,
        "inputs": {
            f"{split}.{language}": {"sha256": digest(path), "name": path.name}
            for (split, language), path in inputs.items()
        },
    }


def copy_plain(settings, inputs, folder):
    """Write the aligned plain text; returns {split: number of pairs, "dropped": ...}.

    Training pairs with an empty side teach nothing and are left out; a pair to be translated
    stays, whatever it is.
    """
    counts = {"dropped": 0}
    for split in settings.files:
        paths = [inputs[split, language] for language in settings.languages]
        outputs = [folder / f"{split}.{language}" for language in settings.languages]
        counts[split] = 0
        with written(outputs[0]) as first, written(outputs[1]) as second:
            for source, target in pairs_of(*paths):
                if split == "train" and not (source and target):
                    counts["dropped"] += 1
                    continue
                first.write(source + "\n")
                second.write(target + "\n")
                counts[split] += 1
        if not counts[split]:
            raise RecipeError(f"{paths[0]} and {paths[1]} hold no sentence pair")
    return counts


def apply_subwords(settings, model, raw, folder):
    """Write text/ from raw/."""
    for split in settings.files:
        for language in settings.languages:
            lines = lines_of(raw / f"{split}.{language}")
            with written(folder / f"{split}.{language}") as stream:
                while chunk := list(itertools.islice(lines, CHUNK)):
                    stream.writelines(line + "\n" for line in model.encode(chunk))


def build(settings, bpe, inputs, folder, workers):
    """Everything, in `folder`; returns the counts."""
    for name in ("raw", "text"):
        (folder / name).mkdir(parents=True)
    counts = copy_plain(settings, inputs, folder / "raw")
    kind = SUBWORDS[bpe]
    training = [folder / "raw" / f"train.{language}" for language in settings.languages]
    kind.learn(training, settings.vocabulary, settings.subword_lines, folder / kind.file)
    apply_subwords(settings, kind(folder / kind.file), folder / "raw", folder / "text")
    command = preprocess_command(settings, folder / "text", folder / "bin", workers)
    execute(command, folder / "preprocess.log")
    counts["dictionary"] = sum(1 for _ in lines_of(folder / "bin" / f"dict.{settings.source}.txt"))
    return counts


def install(folder, destination):
    """Give the finished `folder` its name; what stood there goes away after it is replaced."""
    old = destination.with_name(f"{destination.name}.old{os.getpid()}")
    if destination.exists():
        os.replace(destination, old)
    os.replace(folder, destination)
    shutil.rmtree(old, ignore_errors=True)


def is_current(wanted, data, force):
    """Is DATA already what was asked for? Raises RecipeError when it is something else."""
    if not data.exists() or (data.is_dir() and not any(data.iterdir())):
        return False
    stamp = data / STAMP
    if not stamp.is_file():
        raise RecipeError(f"DATA {data} exists and was not made by this script; name another one")
    found = json.loads(stamp.read_text(encoding="utf-8"))
    changed = sorted(key for key in wanted if found.get(key) != wanted[key])
    if changed and not force:
        raise RecipeError(
            f"DATA {data} was made with other {', '.join(changed)}; name another folder, or "
            "replace it with --force"
        )
    return not changed


def main(argv=None):
    args = arguments(argv)
    settings = read_settings(args.recipe)
    inputs = inputs_of(settings, args.raw)
    wanted = description(settings, args.bpe, inputs)
    if is_current(wanted, args.data, args.force):
        print(f"{args.data} is up to date")
        return
    data = Path(os.path.abspath(args.data))
    data.parent.mkdir(parents=True, exist_ok=True)
    work = data.with_name(f"{data.name}.tmp{os.getpid()}")
    try:
        counts = build(settings, args.bpe, inputs, work, args.workers)
        with written(work / STAMP) as stream:
            json.dump({**wanted, "counts": counts}, stream, indent=1)
        install(work, data)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for split, name in settings.files.items():
        print(f"{split:<6} {counts[split]:>9,} sentence pairs ({name})")
    print(f"dropped {counts['dropped']:>8,} training pairs with an empty side")
    print(f"joint dictionary of {counts['dictionary']:,} subwords ({args.bpe})")
    print(f"ready: {args.data}")


if __name__ == "__main__":
    try:
        main()
    except RecipeError as error:
        sys.exit(f"prepare.py: {error}")
