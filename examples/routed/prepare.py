#!/usr/bin/env python3
"""Raw text and annotated corpora -> subwords, one binarised folder for each size of the main task.

    python prepare.py RAW DATA [--recipe multi30k]

RAW holds the files that the recipe names. DATA is made whole or not at all:
    raw/main/, raw/{ner,tree,amr}/   plain sentences and targets, {train,valid,test}.LANGUAGE
    text/                            the same in subwords; tags and trees as whole symbols
    bin/SIZE/                        all tasks, the translation task cut to SIZE sentences
    prepared.json                    counts and the inputs; a second call with the same is a no-op
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools.cli import make_parser, script
from recipe_tools.commands import execute, preprocess_command
from recipe_tools.corpus import apply_subwords, copy_plain, describe_inputs, inputs_of, make_folder
from recipe_tools.files import digest, lines_of, written
from recipe_tools.settings import SPLITS
from routed_recipe.corpora import (
    auxiliary_files,
    cut,
    spell_symbols,
    subword_models,
    write_auxiliary,
)
from routed_recipe.settings import AUXILIARY, read_settings


def arguments(argv):
    parser = make_parser(__doc__, "raw", "data", "--recipe", "--workers", "--force")
    return parser.parse_args(argv)


def spell(settings, folder, models):
    """Write text/ from raw/."""
    for task in ("main", *AUXILIARY):
        (folder / "text" / task).mkdir(parents=True)
        for split in SPLITS:
            for language in (settings.source, settings.target if task == "main" else task):
                name = f"{task}/{split}.{language}"
                if language in models:
                    apply_subwords(models[language], folder / "raw" / name, folder / "text" / name)
                else:
                    spell_symbols(folder / "raw" / name, folder / "text" / name)


def cut_main(settings, folder, size, count):
    """Write text/SIZE/, the translation task cut to that size; return its number of sentences."""
    line_numbers = set(cut(count, size, settings.numbers["seed"]))
    (folder / "text" / size).mkdir()
    for split in SPLITS:
        for language in (settings.source, settings.target):
            name = f"{split}.{language}"
            with written(folder / "text" / size / name) as stream:
                for number, line in enumerate(lines_of(folder / "text" / "main" / name)):
                    if split != "train" or number in line_numbers:
                        stream.write(line + "\n")
    return len(line_numbers)


def make_dictionaries(settings, folder):
    """Write bin/dict.LANGUAGE.txt from all training text; English has one for all tasks."""
    texts = folder / "text"
    english = texts / f"all.{settings.source}"
    with written(english) as stream:
        for task in ("main", *AUXILIARY):
            lines = lines_of(texts / task / f"train.{settings.source}")
            stream.writelines(line + "\n" for line in lines)
    prefixes = {settings.source: texts / "all", settings.target: texts / "main" / "train"}
    prefixes.update({task: texts / task / "train" for task in AUXILIARY})
    for language, prefix in prefixes.items():
        command = ["fairseq-preprocess", "--only-source", "--dict-only", "-s", language]
        command += ["--trainpref", prefix, "--destdir", folder / "bin"]
        execute(command, folder / f"preprocess.{language}.log")


def binarise(settings, folder, workers):
    """Write bin/SIZE for every size, all with the same dictionaries."""
    make_dictionaries(settings, folder)
    for size in settings.sizes:
        for pair in settings.pairs:
            task = size if pair == settings.main else pair.split("-")[1]
            destination, texts = folder / "bin" / size, folder / "text" / task
            command = preprocess_command(pair, SPLITS, texts, destination, workers)
            for side, language in zip(("src", "tgt"), pair.split("-")):
                command += [f"--{side}dict", folder / "bin" / f"dict.{language}.txt"]
            execute(command, folder / f"preprocess.{size}.{pair}.log")


def build(settings, inputs, files, folder, workers):
    """Prepare everything in `folder` and return the counts."""
    for name in ("raw/main", "text", "bin"):
        (folder / name).mkdir(parents=True)
    counts = {"main": copy_plain(inputs, folder / "raw" / "main")}
    counts.update(write_auxiliary(settings, files, folder))
    spell(settings, folder, subword_models(settings, folder))
    whole = counts["main"]["train"]
    counts["sizes"] = {size: cut_main(settings, folder, size, whole) for size in settings.sizes}
    binarise(settings, folder, workers)
    return counts


def main(argv=None):
    args = arguments(argv)
    settings = read_settings(args.recipe)
    inputs = inputs_of(settings.files, (settings.source, settings.target), args.raw)
    files = auxiliary_files(settings, args.raw)
    description = {
        "recipe": settings.name,
        "data": {**settings.text["data"], **{task: settings.text[task] for task in AUXILIARY}},
        "inputs": describe_inputs(inputs),
        "auxiliary": {name: digest(path) for name, path in files.items()},
    }
    counts = make_folder(
        args.data,
        description,
        args.force,
        lambda folder: build(settings, inputs, files, folder, args.workers),
    )
    for task, splits in (counts or {}).items():
        print(task, "  ".join(f"{name} {count:,}" for name, count in splits.items()))


if __name__ == "__main__":
    script(main)
