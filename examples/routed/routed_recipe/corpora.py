"""The tasks' sentences: translation cut to a size, named entities, trees and graphs linearised."""

import itertools
import random
import re

from recipe_tools import RecipeError
from recipe_tools.files import lines_of, written
from recipe_tools.settings import SPLITS
from recipe_tools.subwords import SentencePiece

from fairseq_ext.routed import linearise
from fairseq_ext.routed.formats import Malformed, graphs

SPACE = "\u2581"  # what sentencepiece puts in front of a word
IDENTIFIER = re.compile(r"^#.*::id (\S+)", re.MULTILINE)


def auxiliary_files(settings, raw):
    """Return {name: path} of the auxiliary raw files. Raises RecipeError if one is missing."""
    files = {}
    for task in ("ner", "tree", "amr"):
        for key, name in settings.text[task].items():
            files[f"{task}.{key}"] = raw / name
            if not files[f"{task}.{key}"].is_file():
                raise RecipeError(f"RAW {raw}: there is no {name} ([{task}] {key})")
    return files


def linear(task, path):
    """Return [[(sentence, target)] of each text]. Raises RecipeError with file and line."""
    texts = []
    try:
        for name, lines in linearise.texts(path, linearise.MEMBERS[task]):
            texts.append(list(linearise.text_pairs(task, name, lines)))
            for pair in texts[-1]:
                if isinstance(pair, Malformed):
                    raise pair
    except ValueError as error:
        raise RecipeError(str(error)) from error
    return texts


def shares(texts):
    """Return {split: pairs}: whole texts in their order, about 80%, 10% and 10% of all pairs."""
    splits = {split: [] for split in SPLITS}
    total = sum(map(len, texts))
    for pairs in texts:
        before = 10 * sum(map(len, splits.values()))
        splits["train" if before < 8 * total else "valid" if before < 9 * total else "test"] += (
            pairs
        )
    return splits


def identified(path):
    """Return {identifier: (sentence, target)} of the graphs of a file."""
    pairs = {}
    for _, lines in linearise.texts(path):
        for _, text in graphs.blocks(lines):
            pair, name = graphs.forward(text), IDENTIFIER.search(text)
            if pair and not name:
                raise RecipeError(f"{path}: no line '# ::id NAME' above the graph of: {pair[0]}")
            if pair:
                pairs[name.group(1)] = pair
    return pairs


def examples(task, files):
    """Return {split: [(sentence, target)]} of an auxiliary task."""
    if task == "ner":
        return {
            split: list(itertools.chain(*linear(task, files[f"ner.{split}"]))) for split in SPLITS
        }
    if task == "tree":
        return shares(linear(task, files["tree.file"]))
    paths = [files[f"amr.{key}"] for key in ("whole", "train", "test")]
    for path in paths:
        linear(task, path)  # names what is malformed
    whole, train, test = map(identified, paths)
    rest = [pair for name, pair in whole.items() if name not in train and name not in test]
    return {"train": list(train.values()), "valid": rest, "test": list(test.values())}


def select(splits, settings):
    """Return the splits without too long training targets, and with less validation data."""
    longest, valid = settings.numbers["longest"], settings.numbers["valid_sentences"]
    train = [pair for pair in splits["train"] if len(pair[1].split()) <= longest]
    return {**splits, "train": train, "valid": splits["valid"][:valid]}


def write_auxiliary(settings, files, folder):
    """Write raw/TASK/{train,valid,test}.{en,TASK}; return {task: {split: sentences}}."""
    counts = {}
    for task in ("ner", "tree", "amr"):
        (folder / "raw" / task).mkdir()
        counts[task] = {}
        for split, pairs in select(examples(task, files), settings).items():
            for place, language in enumerate((settings.source, task)):
                with written(folder / "raw" / task / f"{split}.{language}") as stream:
                    stream.writelines(pair[place] + "\n" for pair in pairs)
            counts[task][split] = len(pairs)
    return counts


def spell_symbols(source, destination):
    """Write whole symbols as pieces; joining them as sentencepiece does restores the line."""
    with written(destination) as stream:
        for line in lines_of(source):
            stream.write(" ".join(SPACE + symbol for symbol in line.split()) + "\n")


def subword_models(settings, folder):
    """Return {language: model} (English of all tasks, German, graphs), from training text alone."""
    raw, numbers = folder / "raw", settings.numbers
    english = [raw / task / f"train.{settings.source}" for task in ("main", "ner", "tree", "amr")]
    sources = {
        settings.source: (english, "source_vocabulary"),
        settings.target: ([raw / "main" / f"train.{settings.target}"], "target_vocabulary"),
        "amr": ([raw / "amr" / "train.amr"], "graph_vocabulary"),
    }
    models = {}
    for language, (paths, key) in sources.items():
        path = folder / f"{language}.{SentencePiece.file}"
        SentencePiece.learn(paths, numbers[key], 0, path)
        models[language] = SentencePiece(path)
    return models


def cut(count, size, seed):
    """Return the line numbers of a cut from 0, in order; smaller cuts are parts of larger ones."""
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return sorted(order[: count if size == "all" else int(size)])
