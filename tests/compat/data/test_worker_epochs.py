"""Processes that load data know which epoch it is."""

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary, FairseqDataset, ListDataset, MaskTokensDataset
from fairseq.data.iterators import EpochBatchIterator


class Epochs(FairseqDataset):
    """Each item is the epoch."""

    epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __getitem__(self, index):
        return self.epoch

    def __len__(self):
        return 4


class Numbers(Epochs):
    """Each item is its number."""

    set_epoch = FairseqDataset.set_epoch

    def __getitem__(self, index):
        return index


def iterator(dataset, workers, **options):
    batches = [[0, 1], [2, 3]]
    return EpochBatchIterator(dataset, collate, batches, num_workers=workers, **options)


def collate(items):
    return torch.stack([torch.as_tensor(item) for item in items])


def epochs_of(batches, number, shuffle=True):
    """The batches of the first epochs, as lists."""
    epochs = [
        [batch.tolist() for batch in batches.next_epoch_itr(shuffle=shuffle)] for _ in range(number)
    ]
    batches._cur_epoch_itr = batches.dataloader = None  # the processes end now, not at some time
    return epochs


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_items_are_of_the_epoch(workers):
    batches = iterator(Epochs(), workers, reuse_dataloader=True)
    assert epochs_of(batches, 3) == [[[epoch] * 2] * 2 for epoch in (1, 2, 3)]


def test_processes_remain_where_items_have_no_epoch():
    batches = iterator(Numbers(), 1, reuse_dataloader=True)
    assert batches.reuse_dataloader
    assert epochs_of(batches, 2, shuffle=False) == [[[0, 1], [2, 3]]] * 2


@pytest.mark.parametrize("workers", [0, 1])
def test_masks_are_of_the_epoch(workers):
    """As of the task masked_lm. The same from the second epoch on, which a run may begin with."""
    dictionary = Dictionary()
    mask = dictionary.add_symbol("<mask>")
    words = [dictionary.add_symbol(f"w{index}") for index in range(20)]
    lines = ListDataset([torch.tensor(words)] * 4, np.full(4, len(words)))

    def masked():
        sources, _ = MaskTokensDataset.apply_mask(
            lines, dictionary, pad_idx=dictionary.pad(), mask_idx=mask, mask_prob=0.5
        )
        return iterator(sources, workers, reuse_dataloader=True)

    first, second = epochs_of(masked(), 2)
    assert sorted(sum(first, [])) != sorted(sum(second, []))
    resumed = masked()
    resumed.load_state_dict({"epoch": 2})
    assert epochs_of(resumed, 1) == [second]
