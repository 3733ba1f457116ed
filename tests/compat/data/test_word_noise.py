"""Shuffled and dropped words."""

from collections import Counter

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary, data_utils
from fairseq.data.noising import UnsupervisedMTNoising, WordDropout, WordShuffle


@pytest.fixture
def words():
    dictionary = Dictionary()
    for symbol in ("a", "b@@", "c", "d", "e@@", "f@@", "g", "h"):
        dictionary.add_symbol(symbol)
    return dictionary


def column(words, text):
    tokens = torch.tensor([words.index(symbol) for symbol in text.split()])
    return tokens.unsqueeze(1), torch.tensor([len(tokens)])


def shuffled(words, text, distance, seed):
    with data_utils.numpy_seed(seed):
        tokens, lengths = WordShuffle(words).noising(*column(words, text), distance)
    assert lengths.tolist() == [len(text.split())]
    return [words[token] for token in tokens[:, 0]]


def test_each_word_moves_by_less_than_the_distance(words):
    firsts = Counter()
    for seed in range(300):
        result = shuffled(words, "a b@@ c d e@@ f@@ g h </s>", 3, seed)
        assert result[-1] == "</s>"
        sequence = "".join(result[:-1]).replace("b@@c", "b").replace("e@@f@@g", "e")
        assert sorted(sequence) == ["a", "b", "d", "e", "h"]
        assert all(abs("abdeh".index(word) - place) < 3 for place, word in enumerate(sequence))
        firsts[sequence[0]] += 1
    # of three words with noise U(0, 3): P(b first) = P(1 + x < y, z + 2) by a simulation
    noise = np.random.RandomState(1).uniform(0, 3, (200_000, 5)) + np.arange(5)
    expected = (noise.argmin(axis=1) == 0).mean()
    assert abs(firsts["a"] / 300 - expected) < 0.1 and firsts["b"] and firsts["d"]


def test_the_symbol_of_the_beginning_stays(words):
    results = [shuffled(words, "<s> a d h", 3, seed) for seed in range(50)]
    assert {result[0] for result in results} == {"<s>"}
    assert len({result[1] for result in results}) == 3


@pytest.mark.parametrize("distance", [0, 0.5, 1])
def test_short_distances_leave_the_order(words, distance):
    assert shuffled(words, "a d h </s>", distance, 1) == ["a", "d", "h", "</s>"]


def test_a_word_is_put_back(words):
    for seed in range(50):
        with data_utils.numpy_seed(seed):
            tokens, lengths = WordDropout(words).noising(*column(words, "a d </s>"), 0.95)
        symbols = [words[token] for token in tokens[: lengths[0], 0]]
        assert symbols[-1] == "</s>" and "</s>" not in symbols[:-1] and len(symbols) > 1


def test_lines_of_one_word(words):
    noiser = UnsupervisedMTNoising(words, 3, 0.9, 0.1)
    assert noiser.noising(*column(words, "</s>"))[-1] == words.eos()
    assert noiser.noising(*column(words, "a"))[0] in (words.index("a"), words.unk())
