"""Scores of labels by hand."""

import torch

from fairseq_ext.duo.criterion import counts, macro_f1


def test_macro_f1_by_hand():
    """Label 0: 1 of 2 found, 1 of 1 true -> 2/3; label 1: 1 of 1, 1 of 2 -> 2/3; 2 never occurs."""
    table = counts(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), 3)
    assert table.tolist() == [[1, 1, 0], [2, 1, 0], [1, 2, 0]]
    assert macro_f1(table) == 66.67
