"""roberta/wsc: cross entropy of pairs (fairseq_ext/compat/examples/winogrande.py)."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

QUERY, CANDIDATE = [-1.0, -2.0, -0.5], [-3.0, -1.0, -0.5]


@pytest.fixture
def criterion(example):
    """Function: WinograndeCriterion with --wsc-cross-entropy or without."""
    stock = example("roberta/wsc", "wsc_criterion").WinograndeCriterion

    def build(is_cross_entropy):
        instance = stock.__new__(stock)
        torch.nn.Module.__init__(instance)
        instance.prediction_h = None
        instance.args = SimpleNamespace(
            wsc_cross_entropy=is_cross_entropy, wsc_margin_alpha=5.0, wsc_margin_beta=0.4
        )
        return instance

    return build


def test_cross_entropy_is_of_pairs(criterion):
    loss = criterion(True).get_loss(torch.tensor(QUERY), torch.tensor(CANDIDATE))
    expected = sum(-np.log(np.exp(q) / (np.exp(q) + np.exp(c))) for q, c in zip(QUERY, CANDIDATE))
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_margin_is_as_in_stock(criterion):
    loss = criterion(False).get_loss(torch.tensor(QUERY), torch.tensor(CANDIDATE))
    expected = sum(-q + 5.0 * max(c - q + 0.4, 0) for q, c in zip(QUERY, CANDIDATE))
    assert loss.item() == pytest.approx(expected, rel=1e-5)
