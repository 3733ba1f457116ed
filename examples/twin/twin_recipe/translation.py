"""Parallel text, one sentence a line, in subwords of each language."""

from recipe_tools.commands import execute, preprocess_command
from recipe_tools.corpus import apply_subwords, copy_plain, inputs_of
from recipe_tools.files import lines_of, written
from recipe_tools.settings import SPLITS
from recipe_tools.subwords import SentencePiece

from .metrics import Perplexity, SacreBLEU

KEYS, OPTIONAL_KEYS = {"source", "target", *SPLITS, "vocabulary"}, {"train_lines"}
METRICS = (SacreBLEU("bleu"), SacreBLEU("chrf"), Perplexity())
UNIT = "sentencepiece"
BATCH = 4000


def sides(settings):
    return settings.data["source"], settings.data["target"]


def TEXT(settings):  # noqa: N802  (a constant in the other kinds of data)
    return f"text/train.{sides(settings)[1]}"


def files(settings, raw):
    stems = {split: settings.data[split] for split in SPLITS}
    paths = inputs_of(stems, sides(settings), raw)
    return {f"{split}.{language}": path for (split, language), path in paths.items()}


def task(settings):
    source, target = sides(settings)
    return ["--task", "translation", "-s", source, "-t", target]


def build(settings, files, folder, root, workers):
    (vocabulary,), (source, target) = settings.numbers("vocabulary", 1), sides(settings)
    inputs = {tuple(name.split(".")): path for name, path in files.items()}
    (train_lines,) = settings.numbers("train_lines", 1, "0")
    counts = copy_plain(inputs, folder / "raw", train_lines)
    (folder / "text").mkdir()
    for language in (source, target):
        path = folder / f"{language}.{SentencePiece.file}"
        SentencePiece.learn([folder / "raw" / f"train.{language}"], vocabulary, 0, path)
        model = SentencePiece(path)
        for split in SPLITS:
            name = f"{split}.{language}"
            apply_subwords(model, folder / "raw" / name, folder / "text" / name)
    for split in ("valid", "test"):
        with written(folder / "raw" / f"{split}.ref") as stream:
            lines = lines_of(folder / "raw" / f"{split}.{target}")
            stream.writelines(line + "\n" for line in lines)
    pair = f"{source}-{target}"
    command = preprocess_command(pair, SPLITS, folder / "text", folder / "bin", workers)
    execute(command, folder / "preprocess.log")
    return counts
