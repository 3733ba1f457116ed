"""The values that layers start from."""

import pytest
import torch

from fairseq_ext.common.layers import embedding, linear

PAD = 1


def test_embedding_starts_normal_with_a_zero_row():
    table = embedding(1000, 64, PAD).weight.detach()
    assert not table[PAD].any()
    others = torch.cat([table[:PAD], table[PAD + 1 :]])
    assert others.std().item() == pytest.approx(64**-0.5, rel=0.02)
    assert abs(others.mean().item()) < 0.03 * 64**-0.5


def test_linear_starts_uniform_without_bias():
    """Xavier: uniform up to sqrt(6 / (inputs + outputs))."""
    layer, bound = linear(300, 100), (6 / 400) ** 0.5
    assert not layer.bias.any()
    assert 0.99 * bound < layer.weight.abs().max().item() <= bound
    assert layer.weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.02)
    assert linear(3, 2, bias=False).bias is None


def test_shapes():
    """(outputs, inputs) of a map, (words, width) of a table."""
    assert linear(3, 5).weight.shape == (5, 3) and linear(3, 5).bias.shape == (5,)
    table = embedding(7, 4, PAD)
    assert table.weight.shape == (7, 4) and table.padding_idx == PAD
