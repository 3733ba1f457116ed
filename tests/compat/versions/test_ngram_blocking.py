"""--no-repeat-ngram-size: no n-gram comes twice, and nothing else is forbidden."""

import math

import pytest
import torch
from common import inprocess
from fairseq.ngram_repeat_block import NGramRepeatBlock
from options.systems import SYSTEMS, Data

PAD, END = 1, 2


def repeating(words, size, vocabulary):
    """The words that would complete an n-gram that ``words`` has already."""
    ngrams = {tuple(words[start : start + size]) for start in range(len(words) - size + 1)}
    last = tuple(words[len(words) - size + 1 :])
    return {word for word in range(vocabulary) if (*last, word) in ngrams}


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("scripted", [False, True])
def test_against_a_list_of_ngrams(size, scripted):
    block = NGramRepeatBlock(size)
    block = torch.jit.script(block) if scripted else block
    generator = torch.Generator().manual_seed(size)
    for step in range(9):
        tokens = torch.full((6, 12), PAD)
        tokens[:, 0] = END
        tokens[:, 1 : step + 1] = torch.randint(4, 7, (6, step), generator=generator)
        scores = block(tokens, torch.zeros(6, 8), 3, 2, step)
        for row, score in zip(tokens[:, 1 : step + 1].tolist(), scores.tolist()):
            assert {w for w in range(8) if score[w] == -math.inf} == repeating(row, size, 8)


@pytest.mark.parametrize(
    "task", ["translation", pytest.param("fast_translation", marks=pytest.mark.slow)]
)
def test_translations_repeat_nothing(toy_corpus, tmp_path_factory, task):
    system, data = SYSTEMS["transformer"], Data(toy_corpus, tmp_path_factory.mktemp)
    folder = tmp_path_factory.mktemp("trained")
    trial = ["--max-update", 1, "--batch-size", 8, "--disable-validation", "--save-dir", folder]
    inprocess.train(*system.words(data["two"], *trial))
    words = system._replace(task=task).inference_words(
        data["two"], folder / "checkpoint_last.pt", "--max-len-b", 12, "--min-len", 8
    )
    repeats = {}
    for size in (0, 2):
        output = inprocess.generate(*words, "--no-repeat-ngram-size", size)
        lines = [text.split() for (_, text), *_ in inprocess.hypotheses(output).values()]
        pairs = [list(zip(line, line[1:])) for line in lines]
        repeats[size] = sum(len(line) - len(set(line)) for line in pairs)
    assert repeats[0] > 0 and repeats[2] == 0
