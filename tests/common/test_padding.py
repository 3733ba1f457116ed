"""Padding that moves, and what leaves it out."""

import pytest
import torch

from fairseq_ext.common.padding import (
    align_left,
    leading_padding,
    mean_of_real,
    put_back,
    reorder,
    reversal,
)

PAD = 1


def test_reversal_stays_within_each_sentence():
    padding = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 0], [0, 1, 1, 1, 1]]).bool()
    positions = reversal(padding)
    assert positions[0, :3].tolist() == [2, 1, 0]
    assert positions[1].tolist() == [4, 3, 2, 1, 0]
    assert positions[2, 0] == 0
    for row, hidden in zip(positions, padding):
        assert sorted(row.tolist()) == list(range(5))
        assert hidden[row][hidden].all()
    rows = torch.randn(3, 5, 2)
    twice = reorder(reorder(rows, positions), positions)
    assert torch.equal(twice, rows)


def test_reorder_is_a_gather_along_positions():
    rows, positions = torch.randn(2, 3, 4), torch.tensor([[2, 0, 0], [1, 1, 2]])
    expected = torch.stack([rows[0, [2, 0, 0]], rows[1, [1, 1, 2]]])
    assert torch.equal(reorder(rows, positions), expected)


def test_alignment_moves_padding_to_the_end():
    tokens = torch.tensor([[1, 1, 5, 6], [4, 5, 6, 7], [5, 6, 1, 1], [1, 1, 1, 9]])
    aligned = align_left(tokens, PAD)
    assert aligned.tolist() == [[5, 6, 1, 1], [4, 5, 6, 7], [5, 6, 1, 1], [9, 1, 1, 1]]
    assert torch.equal(align_left(aligned, PAD), aligned)


@pytest.mark.parametrize("dim", [1, 2])
def test_what_was_aligned_is_put_back(dim):
    """Values along dimension 1 or 2, one number for each token."""
    tokens = torch.tensor([[1, 1, 5, 6], [4, 5, 6, 7], [5, 6, 1, 1], [1, 1, 1, 9]])
    leading = leading_padding(tokens, PAD)
    assert leading.tolist() == [[2], [0], [0], [3]]
    values = torch.stack([tokens, 10 * tokens], dim=3 - dim)
    aligned = align_left(tokens, PAD)
    moved = torch.stack([aligned, 10 * aligned], dim=3 - dim)
    assert torch.equal(put_back(moved, leading, dim), values)


def test_the_mean_takes_no_notice_of_padding():
    values = torch.tensor([[[1.0, 2.0], [3.0, 6.0], [7.0, 7.0]], [[4.0, 5.0]] * 3])
    padding = torch.tensor([[False, False, True], [False, True, True]])
    assert mean_of_real(values, padding).tolist() == [[2, 4], [4, 5]]
