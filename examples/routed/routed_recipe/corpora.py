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
    """{name: path} of the raw files of the auxiliary tasks. Raises RecipeError where one lacks."""
    found = {}
    for task in ("ner", "tree", "amr"):
        for key, name in settings.text[task].items():
            found[f"{task}.{key}"] = raw / name
            if not found[f"{task}.{key}"].is_file():
                raise RecipeError(f"RAW {raw}: there is no {name} ([{task}] {key})")
    return found


def linear(task, path):
    """[[(sentence, target)] of each text] of a corpus. Raises RecipeError with file and line."""
    found = []
    try:
        for name, lines in linearise.texts(path, linearise.MEMBERS[task]):
            found.append(list(linearise.text_pairs(task, name, lines)))
            for one in found[-1]:
                if isinstance(one, Malformed):
                    raise one
    except ValueError as error:
        raise RecipeError(str(error)) from error
    return found


def shares(texts):
    """{split: pairs}: whole texts in their order, about 80%, 10% and 10% of all pairs."""
    found = {split: [] for split in SPLITS}
    total = sum(map(len, texts))
    for pairs in texts:
        before = 10 * sum(map(len, found.values()))
        found["train" if before < 8 * total else "valid" if before < 9 * total else "test"] += pairs
    return found


def identified(path):
    """{identifier: (sentence, target)} of the graphs of a file."""
    found = {}
    for _, lines in linearise.texts(path):
        for _, text in graphs.blocks(lines):
            pair, name = graphs.forward(text), IDENTIFIER.search(text)
            if pair and not name:
                raise RecipeError(f"{path}: no line '# ::id NAME' above the graph of: {pair[0]}")
            if pair:
                found[name.group(1)] = pair
    return found


def examples(task, files):
    """{split: [(sentence, target)]} of an auxiliary task."""
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


def select(found, settings):
    """Leave out training targets that are too long, and what is too much for validation."""
    longest, valid = settings.numbers["longest"], settings.numbers["valid_sentences"]
    train = [pair for pair in found["train"] if len(pair[1].split()) <= longest]
    return {**found, "train": train, "valid": found["valid"][:valid]}


def write_auxiliary(settings, files, folder):
    """raw/TASK/{train,valid,test}.{en,TASK}; returns {task: {split: sentences}}."""
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
    """Whole symbols as pieces: joining them as sentencepiece does gives the line again."""
    with written(destination) as stream:
        for line in lines_of(source):
            stream.write(" ".join(SPACE + symbol for symbol in line.split()) + "\n")


def subword_models(settings, folder):
    """{language: model}: English from all tasks, German, graphs; each from training text alone."""
    raw, numbers = folder / "raw", settings.numbers
    english = [raw / task / f"train.{settings.source}" for task in ("main", "ner", "tree", "amr")]
    wanted = {
        settings.source: (english, "source_vocabulary"),
        settings.target: ([raw / "main" / f"train.{settings.target}"], "target_vocabulary"),
        "amr": ([raw / "amr" / "train.amr"], "graph_vocabulary"),
    }
    models = {}
    for language, (paths, key) in wanted.items():
        path = folder / f"{language}.{SentencePiece.file}"
        SentencePiece.learn(paths, numbers[key], 0, path)
        models[language] = SentencePiece(path)
    return models


def cut(count, size, seed):
    """Line numbers of a cut from 0, in order; a smaller cut is a part of a larger one."""
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return sorted(order[: count if size == "all" else int(size)])
