"""Folders as fairseq-preprocess makes them, from lines of text, without a process of their own."""

import random

import torch
from fairseq.data import Dictionary, indexed_dataset

WORDS = 16


def words_of(lang):
    """The words of an invented language; each language has as many."""
    return [f"{lang}{number}" for number in range(WORDS)]


def dictionary_of(*langs):
    """Their dictionary: entry N of a language is not the entry N of another."""
    dictionary = Dictionary()
    for lang in langs:
        for word in words_of(lang):
            dictionary.add_symbol(word)
    return dictionary


def random_lines(lang, count, seed=0, lengths=(2, 7)):
    """``count`` random sentences, of ``lengths[0]`` to ``lengths[1]`` words."""
    source = random.Random(f"{lang}{seed}")
    return [
        " ".join(source.choices(words_of(lang), k=source.randint(*lengths))) for _ in range(count)
    ]


def write_pair(folder, split, pair, joined=(), **lines):
    """``split`` of ``pair`` in ``folder``: one keyword for each language, its lines.

    A language that is left out has no file; dict.LANG.txt are written for both, with the words of
    the language, or of all languages in ``joined``.
    """
    folder.mkdir(exist_ok=True, parents=True)
    for lang in pair.split("-"):
        dictionary = dictionary_of(*(joined or [lang]))
        dictionary.save(str(folder / f"dict.{lang}.txt"))
        if lang not in lines:
            continue
        prefix = str(folder / f"{split}.{pair}.{lang}")
        builder = indexed_dataset.make_builder(f"{prefix}.bin", "mmap", len(dictionary))
        for line in lines[lang]:
            tokens = dictionary.encode_line(line, add_if_not_exist=False, append_eos=True)
            builder.add_item(tokens)
        builder.finalize(f"{prefix}.idx")
    return folder


def write_lines(folder, split, lang, lines, joined=()):
    """Monolingual ``split`` of a language, as fairseq-preprocess --only-source writes it."""
    folder.mkdir(exist_ok=True, parents=True)
    dictionary = dictionary_of(*(joined or [lang]))
    dictionary.save(str(folder / f"dict.{lang}.txt"))
    prefix = str(folder / f"{split}.{lang}-None.{lang}")
    builder = indexed_dataset.make_builder(f"{prefix}.bin", "mmap", len(dictionary))
    for line in lines:
        builder.add_item(dictionary.encode_line(line, add_if_not_exist=False, append_eos=True))
    builder.finalize(f"{prefix}.idx")
    return folder


def write_alignments(folder, split, pair, lines):
    """``split`` of the alignments of ``pair``: for each line [(source word, target word)]."""
    prefix = str(folder / f"{split}.align.{pair}")
    builder = indexed_dataset.make_builder(f"{prefix}.bin", "mmap", None)
    for pairs in lines:
        builder.add_item(torch.tensor(pairs).flatten().int())
    builder.finalize(f"{prefix}.idx")
