"""Text for language models, one sentence a line; sentences are read by themselves."""

import io
import zipfile

from recipe_tools import RecipeError
from recipe_tools.commands import execute
from recipe_tools.files import written
from recipe_tools.settings import SPLITS

from .metrics import Perplexity

KEYS, OPTIONAL_KEYS = {"archive", *SPLITS, "tokens_per_sample"}, {"train_lines"}
METRICS = (Perplexity(),)
UNIT = "token"
TEXT = None
BATCH = 4000


def files(settings, raw):
    path = raw / settings.data["archive"]
    if not path.is_file():
        raise RecipeError(f"RAW {raw}: there is no {settings.data['archive']}")
    return {"archive": path}


def task(settings):
    (length,) = settings.numbers("tokens_per_sample", 1)
    words = ["--task", "language_modeling", "--sample-break-mode", "eos"]
    return [*words, "--tokens-per-sample", length]


def binarise(folder, workers):
    """Write bin/ from raw/SPLIT.ref of all splits."""
    command = ["fairseq-preprocess", "--only-source", "--workers", workers]
    for split in SPLITS:
        command += [f"--{split}pref", folder / "raw" / f"{split}.ref"]
    execute([*command, "--destdir", folder / "bin"], folder / "preprocess.log")


def build(settings, files, folder, root, workers):
    (train_lines,), counts = settings.numbers("train_lines", 1, "0"), {}
    with zipfile.ZipFile(files["archive"]) as archive:
        for split in SPLITS:
            name = settings.data[split]
            if name not in archive.namelist():
                raise RecipeError(f"{files['archive']} has no {name} ([data] {split})")
            text = io.TextIOWrapper(archive.open(name), encoding="utf-8")
            lines = [line.strip() for line in text if line.strip()]
            if split == "train" and train_lines:
                lines = lines[:train_lines]
            with written(folder / "raw" / f"{split}.ref") as stream:
                stream.writelines(line + "\n" for line in lines)
            counts[split] = len(lines)
    binarise(folder, workers)
    return counts
