"""--num-batch-buckets: which sentences are trained, and what the decoder reads."""

import numpy as np
import pytest
import torch
from common.words import numbered_words
from fairseq.data import LanguagePairDataset, ListDataset

LENGTHS = [3, 4, 5, 6, 7, 8, 9, 10, 11, 30]


@pytest.fixture
def dataset():
    """Function (buckets, options...): ten pairs, the targets as long as the sources reversed."""

    def dataset(buckets, lengths=LENGTHS, **options):
        words = numbered_words(20)
        sides = []
        for sizes in (lengths, lengths[::-1]):
            lines = [torch.arange(size) % 15 + 4 for size in sizes]
            for line in lines:
                line[-1] = words.eos()
            sides += [ListDataset(lines, sizes), sizes, words]
        return LanguagePairDataset(*sides, num_buckets=buckets, shuffle=False, **options)

    return dataset


@pytest.mark.parametrize("buckets", [1, 2, 3, 8])
@pytest.mark.parametrize("limits", [(20, 20), (9, 30), (30, 9), 20, (40, 40)])
def test_long_sentences_alone_are_left_out(buckets, limits, dataset):
    plain, padded = dataset(0), dataset(buckets)
    expected, ignored = plain.filter_indices_by_size(plain.ordered_indices(), limits)
    indices, also_ignored = padded.filter_indices_by_size(padded.ordered_indices(), limits)
    assert sorted(indices) == sorted(expected) and sorted(also_ignored) == sorted(ignored)
    batches = padded.batch_by_size(indices, max_tokens=60)
    assert sorted(index for batch in batches for index in batch) == sorted(expected)
    longest = limits if isinstance(limits, tuple) else (limits, limits)
    for batch in batches:
        collated = padded.collater([padded[index] for index in batch])
        source, target = collated["net_input"]["src_tokens"], collated["target"]
        assert source.size(1) <= longest[0] and target.size(1) <= longest[1]
        assert max(source.numel(), target.numel()) <= 60


@pytest.mark.parametrize("left", [False, True])
def test_first_words_follow_the_end_symbol(left, dataset):
    """Apart from padding and what is read behind the end, the decoder reads the same."""
    plain, padded = (dataset(buckets, left_pad_target=left) for buckets in (0, 3))
    for index in range(len(LENGTHS)):
        inputs = [
            side.collater([side[index], side[0]])["net_input"]["prev_output_tokens"]
            for side in (plain, padded)
        ]
        for expected, row in zip(*inputs):
            words = expected[expected.ne(1)]
            read = row[row.ne(1)]
            assert read[: len(words)].tolist() == words.tolist()
            if left:
                assert len(read) == len(words) and row[-len(words) :].tolist() == words.tolist()


def test_sizes_without_a_limit_stay(dataset):
    padded = dataset(3)
    before = np.array(padded.src_sizes)
    indices, ignored = padded.filter_indices_by_size(padded.ordered_indices(), None)
    assert len(indices) == 10 and not ignored and (padded.src_sizes == before).all()
