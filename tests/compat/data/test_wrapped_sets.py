"""Data sets that show others in part or in another order."""

from collections import OrderedDict

import numpy as np
import pytest
import torch
from fairseq.data import (
    ColorizeDataset,
    Dictionary,
    FairseqDataset,
    LanguagePairDataset,
    SubsampleDataset,
)
from fairseq.data.audio.multi_modality_dataset import ModalityDatasetItem, MultiModalityDataset
from fairseq.data.multi_corpus_dataset import MultiCorpusDataset

LENGTHS = np.array([3, 40, 5, 30, 4, 35, 6, 20, 33, 7])


class Lines(FairseqDataset):
    """Lines of one word."""

    def __init__(self, lengths=LENGTHS):
        super().__init__()
        self.sizes = lengths

    def __getitem__(self, index):
        return torch.tensor([4] * (self.sizes[index] - 1) + [2])

    def __len__(self):
        return len(self.sizes)

    def num_tokens(self, index):
        return self.sizes[index]

    size = num_tokens


@pytest.mark.parametrize("limit", [10, (10,)])
def test_parts_have_their_lengths(limit):
    np.random.seed(1)
    part = SubsampleDataset(Lines(), 0.6)
    lengths = [len(part[index]) for index in range(len(part))]
    indices, ignored = part.filter_indices_by_size(np.arange(len(part)), limit)
    assert [lengths[index] <= 10 for index in range(len(part))] == [
        index in indices for index in range(len(part))
    ]
    assert len(ignored) + len(indices) == len(part)
    batches = part.batch_by_size(part.ordered_indices(), max_tokens=45)
    assert sorted(index for batch in batches for index in batch) == list(range(len(part)))
    assert all(len(batch) * max(lengths[index] for index in batch) <= 45 for batch in batches)


def test_colors_follow_the_batch():
    lines = Lines(np.array([3, 6, 4]))
    pairs = LanguagePairDataset(lines, lines.sizes, Dictionary(), shuffle=False)
    colored = ColorizeDataset(pairs, lambda dataset, index: int(dataset.src_sizes[index]))
    batch = colored.collater([colored[index] for index in range(3)])
    assert batch["net_input"]["colors"].tolist() == batch["net_input"]["src_lengths"].tolist()
    assert colored.collater([]) == {}


def test_workers_share_one_list_of_batches():
    def batches(rank):
        sets = OrderedDict(a=Lines(), b=Lines())
        dataset = MultiCorpusDataset(sets, [0.5, 0.5], 1, batch_sample=True, distributed_rank=rank)
        dataset.set_epoch(1)
        lists = dataset.batch_by_size(dataset.ordered_indices(), max_sentences=2)
        return [list(batch) for batch in lists]

    assert batches(0) == batches(1)
    assert sorted(batches(0)) == sorted(batches(None))


@pytest.mark.parametrize("shares", [[0.1] * 10, [1 / 3] * 3, [0.7, 0.2, 0.1], [0.3333333] * 3])
def test_shares_add_up(shares):
    """Also those that were rounded to seven digits."""
    corpora = OrderedDict((str(number), Lines()) for number in range(len(shares)))
    dataset = MultiCorpusDataset(corpora, shares, seed=1)
    dataset.set_epoch(1)
    assert len(dataset.ordered_indices()) == len(dataset) == len(shares) * len(LENGTHS)


def test_shares_that_do_not_add_up_are_named():
    corpora = OrderedDict(a=Lines(), b=Lines())
    with pytest.raises(ValueError, match=r"\[0.5, 0.4\] of corpora has to add up to 1"):
        MultiCorpusDataset(corpora, [0.5, 0.4], seed=1)


def test_sets_of_modalities_have_sizes():
    parts = [
        ModalityDatasetItem(f"{len(lengths)} lines", Lines(np.array(lengths)), 20, 20, None)
        for lengths in ([3, 9], [2, 5, 7])
    ]
    assert MultiModalityDataset(parts).sizes.tolist() == [3, 9, 2, 5, 7]
    assert MultiModalityDataset(parts[1:]).sizes.tolist() == [2, 5, 7]
