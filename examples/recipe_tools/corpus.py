"""From raw text to the folder of a recipe: aligned copies, subwords, and an all-or-nothing folder.

The folder carries a stamp, prepared.json: what it was made from, and counts.
"""

import contextlib
import itertools
import json
import os
import shutil
from pathlib import Path

from . import RecipeError
from .files import aligned, digest, find, lines_of, written

STAMP = "prepared.json"
CHUNK = 10000


def inputs_of(files, languages, raw):
    """Return {(split, language): raw file}. files: {split: file name without the language}."""
    if not raw.is_dir():
        raise RecipeError(f"RAW {raw} is not a folder")
    return {
        (split, language): find(raw, stem, language)
        for split, stem in files.items()
        for language in languages
    }


def describe_inputs(inputs):
    """Return the inputs as stored in the stamp."""
    return {
        f"{split}.{language}": {"sha256": digest(path), "name": path.name}
        for (split, language), path in inputs.items()
    }


def copy_plain(inputs, folder, train_lines=0):
    """Write the aligned plain text; returns {split: number of lines, "dropped": ...}.

    train_lines: how many lines of the training text are read, from its first on; 0 = all.

    Training lines that are empty in some language teach nothing and are left out in all; what is
    to be translated stays, whatever it is.
    """
    languages = list(dict.fromkeys(language for _, language in inputs))
    counts = {"dropped": 0}
    for split in dict.fromkeys(split for split, _ in inputs):
        paths = [inputs[split, language] for language in languages]
        counts[split] = 0
        with contextlib.ExitStack() as stack:
            outputs = [
                stack.enter_context(written(folder / f"{split}.{language}"))
                for language in languages
            ]
            last = train_lines if split == "train" and train_lines else None
            for lines in itertools.islice(aligned(*paths), last):
                if split == "train" and not all(lines):
                    counts["dropped"] += 1
                    continue
                for stream, line in zip(outputs, lines):
                    stream.write(line + "\n")
                counts[split] += 1
        if not counts[split]:
            raise RecipeError(f"{' and '.join(map(str, paths))} have no sentence pair")
    return counts


def apply_subwords(model, source, destination):
    """Write the lines of `source`, spelt by `model`, to the file `destination`."""
    lines = lines_of(source)
    with written(destination) as stream:
        while chunk := list(itertools.islice(lines, CHUNK)):
            stream.writelines(line + "\n" for line in model.encode(chunk))


def language_data(folder, pair, language, name):
    """Make folder/name for the task language_modeling from one side of the binarised `pair`."""
    destination = folder / name
    destination.mkdir()
    shutil.copy(folder / f"dict.{language}.txt", destination / "dict.txt")
    for split in ("train", "valid"):
        for ending in ("bin", "idx"):
            binarised = folder / f"{split}.{pair}.{language}.{ending}"
            shutil.copy(binarised, destination / f"{split}.{ending}")


def install(folder, destination):
    """Give the finished `folder` its name; then remove what had that name before."""
    old = destination.with_name(f"{destination.name}.old{os.getpid()}")
    if destination.exists():
        os.replace(destination, old)
    os.replace(folder, destination)
    shutil.rmtree(old, ignore_errors=True)


def is_current(description, data, force):
    """True if DATA is already what was asked for. Raises RecipeError when it is something else."""
    if not data.exists() or (data.is_dir() and not any(data.iterdir())):
        return False
    stamp = data / STAMP
    if not stamp.is_file():
        raise RecipeError(
            f"DATA {data} exists and was not made by this script; choose another folder"
        )
    stored = json.loads(stamp.read_text(encoding="utf-8"))
    changed = sorted(key for key in description if stored.get(key) != description[key])
    if changed and not force:
        raise RecipeError(
            f"DATA {data} was made with other {', '.join(changed)}; name another folder, or "
            "replace it with --force"
        )
    return not changed


def make_folder(data, description, force, build):
    """Make the folder `data` whole or not at all; return its counts, or None if it is current.

    description: what the result depends on. build: function (empty folder) -> counts.
    """
    if is_current(description, data, force):
        print(f"{data} is up to date")
        return None
    data = Path(os.path.abspath(data))
    data.parent.mkdir(parents=True, exist_ok=True)
    work = data.with_name(f"{data.name}.tmp{os.getpid()}")
    try:
        work.mkdir()
        counts = build(work)
        with written(work / STAMP) as stream:
            json.dump({**description, "counts": counts}, stream, indent=1)
        install(work, data)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return counts


def stamp_of(data):
    """Return the stamp of a prepared folder. Raises RecipeError when there is none."""
    stamp = data / STAMP
    if not stamp.is_file():
        raise RecipeError(f"DATA {data} has no {STAMP}; run prepare.py first")
    return json.loads(stamp.read_text(encoding="utf-8"))
