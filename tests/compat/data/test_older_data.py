"""Pairs of sentences and dictionaries with the arguments of fairseq 0.9."""

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary, LanguagePairDataset

LINES = [torch.tensor([4, 5, 2])]
PAIR = (LINES, [3], Dictionary(), LINES, [3], Dictionary(), True, False)


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ((), {"max_source_positions": 30, "max_target_positions": 30, "shuffle": False}),
        ((30, 30, False), {}),
        ((30,), {"max_target_positions": 30, "shuffle": False}),
        ((False,), {}),  # as today
    ],
)
def test_limits_of_positions_are_taken(more, options):
    pairs = LanguagePairDataset(*PAIR, *more, **options)
    assert pairs.shuffle is False and pairs.input_feeding is True
    assert (pairs.left_pad_source, pairs.left_pad_target) == (True, False)


def test_symbols_are_taken_by_place():
    class OlderDictionary(Dictionary):
        def __init__(self, pad="[PAD]", eos="[SEP]", unk="[UNK]", bos="[CLS]", more=("[X]",)):
            super().__init__(pad, eos, unk, bos, more)

    assert OlderDictionary().symbols == ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[X]"]
    assert OlderDictionary().pad_word == "[PAD]"
    assert (
        Dictionary().symbols == Dictionary(pad="<pad>").symbols == ["<s>", "<pad>", "</s>", "<unk>"]
    )
    with pytest.raises(TypeError):
        Dictionary("<pad>", pad="<pad>")
    with pytest.raises(TypeError, match="at most 5"):
        Dictionary(*"abcdef")


def test_limits_of_batches_by_place():
    from fairseq.data import data_utils

    indices, lengths = np.arange(6), np.array([4, 4, 4, 6, 6, 6])

    def length(index):
        return lengths[index]

    older = data_utils.batch_by_size(indices, length, 12, 2)
    assert [list(batch) for batch in older] == [[0, 1], [2, 3], [4, 5]]
    today = data_utils.batch_by_size(indices, length, lengths, 12, 2)
    named = data_utils.batch_by_size(indices, length, max_tokens=12, max_sentences=2)
    for batches in (today, named):
        assert [list(batch) for batch in batches] == [list(batch) for batch in older]
