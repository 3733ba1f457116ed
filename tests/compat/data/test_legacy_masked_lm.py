"""The task legacy_masked_lm and its blocks of text."""

import logging

import numpy as np
import torch


def test_blocks_are_cut_from_lines():
    from fairseq.data import ListDataset
    from fairseq.data.legacy import BertDictionary
    from fairseq.data.legacy.block_pair_dataset import BlockPairDataset

    sizes = np.array([4, 1, 9, 2, 6, 3])
    text = torch.arange(sizes.sum())
    lines = ListDataset(list(text.split(sizes.tolist())), sizes)
    pairs = BlockPairDataset(lines, BertDictionary(), sizes, block_size=11, break_mode="none")
    # blocks of (11 - 3) / 2 tokens
    starts = [pairs[index][0] for index in range(len(pairs))]
    assert [block.tolist() for block in starts] == [part.tolist() for part in text.split(4)]
    followers = [pairs[index][1] for index in range(len(pairs)) if pairs[index][2]]
    assert all(len(block) in (1, 4) for block in followers)


def test_folders_are_logged(caplog):
    from fairseq.tasks import legacy_masked_lm

    with caplog.at_level(logging.INFO):
        legacy_masked_lm.logger.info("data_path", "folder")
        legacy_masked_lm.logger.info("%s examples", 3)
    assert [record.getMessage() for record in caplog.records] == ["data_path", "3 examples"]
