"""Sizes of the blocks of language models (fairseq_ext/compat/data/block_sizes.py)."""

import pytest
import torch
from fairseq.data import TokenBlockDataset

LENGTHS = [70_000, 5, 65_536]


@pytest.mark.parametrize("mode, size", [("eos", None), ("complete", 10)])
def test_long_lines_have_their_size(mode, size):
    lines = [torch.full((length,), 4) for length in LENGTHS]
    blocks = TokenBlockDataset(lines, LENGTHS, size, pad=1, eos=2, break_mode=mode)
    assert blocks.sizes.tolist() == LENGTHS == [len(block) for block in blocks]


def test_short_blocks_are_stored_in_16_bits():
    lines = [torch.full((length,), 4) for length in (3, 5)]
    blocks = TokenBlockDataset(lines, [3, 5], None, pad=1, eos=2, break_mode="eos")
    assert (blocks.sizes.dtype, blocks.sizes.tolist()) == ("uint16", [3, 5])
