"""Rank correlation."""

import math

import numpy as np
import pytest
import torch

from fairseq_ext.twin.commands.ranks import ranks, spearman


def test_rank_correlation():
    generator = torch.Generator().manual_seed(0)
    first = torch.randint(0, 5, (30,), generator=generator).tolist()
    second = torch.randint(0, 9, (30,), generator=generator).tolist()
    places = [
        [sum(a < b for a in values) + (values.count(b) + 1) / 2 for b in values]
        for values in (first, second)
    ]
    assert ranks(first) == places[0]
    assert spearman(first, second) == pytest.approx(np.corrcoef(places)[0, 1])
    assert math.isnan(spearman([1, 1], [1, 2]))


def test_nan_has_a_rank_of_its_own():
    assert ranks([2.0, math.nan]) == [1, 2]
