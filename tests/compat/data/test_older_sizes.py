"""Sets of plugins that say themselves how long their items are."""

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary, LanguagePairDataset, MonolingualDataset

SIZES = (3, 5, 4, 2)
OTHERS = (4, 4, 2, 3)


def words():
    dictionary = Dictionary()
    dictionary.add_symbol("a")
    return dictionary


def lines(sizes):
    return [torch.full((size,), 4) for size in sizes]


class WithContext(LanguagePairDataset):
    """Pairs whose source is read with the ten words before it."""

    def num_tokens(self, index):
        return int(self.src_sizes[index]) + 10

    def size(self, index):
        return self.src_sizes[index] + 10, self.tgt_sizes[index]


class WithBoth(WithContext):
    """The same for fairseq of today, which calls its base."""

    def num_tokens_vec(self, indices):
        return super().num_tokens_vec(indices) + 1

    def filter_indices_by_size(self, indices, max_sizes):
        return super().filter_indices_by_size(indices, max_sizes)


class Doubled(MonolingualDataset):
    """Blocks that are read twice."""

    def num_tokens(self, index):
        return 2 * self.sizes[index]


def pairs(kind):
    source, target, dictionary = lines(SIZES), lines(OTHERS), words()
    return kind(
        source, SIZES, dictionary, target, OTHERS, dictionary, shuffle=False, left_pad_source=False
    )


def batches(dataset, max_tokens):
    return [list(batch) for batch in dataset.batch_by_size(np.arange(4), max_tokens=max_tokens)]


def test_pairs_are_batched_by_the_lengths_that_they_say():
    # 13, 15, 14 and 12 tokens
    assert batches(pairs(WithContext), 30) == [[0, 1], [2, 3]]
    assert batches(pairs(LanguagePairDataset), 30) == [[0, 1, 2, 3]]
    assert batches(pairs(WithBoth), 30) == [[0, 1, 2, 3]]
    assert list(pairs(WithBoth).num_tokens_vec(np.arange(4))) == [5, 6, 5, 4]


def test_blocks_are_batched_by_the_lengths_that_they_say():
    dictionary = words()
    for kind, expected in ((Doubled, [6, 10, 8, 4]), (MonolingualDataset, [3, 5, 4, 2])):
        blocks = kind(lines(SIZES), np.array(SIZES), dictionary, dictionary, False, False)
        assert list(blocks.num_tokens_vec(np.arange(4))) == expected


@pytest.mark.parametrize("limits", [(13, 9), [13, 9]])
def test_pairs_are_left_out_by_the_sizes_that_they_say(limits):
    short_enough, ignored = pairs(WithContext).filter_indices_by_size(np.arange(4), limits)
    assert (list(short_enough), ignored) == ([0, 3], [1, 2])
    for kind in (LanguagePairDataset, WithBoth):
        short_enough, ignored = pairs(kind).filter_indices_by_size(np.arange(4), limits)
        assert (list(short_enough), list(ignored)) == ([0, 1, 2, 3], [])


def test_one_limit_is_for_both_sides():
    short_enough, _ = pairs(WithContext).filter_indices_by_size(np.arange(4), 13)
    assert list(short_enough) == [0, 3]
    short_enough, _ = pairs(WithContext).filter_indices_by_size(np.arange(4), None)
    assert list(short_enough) == [0, 1, 2, 3]
