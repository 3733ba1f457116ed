"""What layers start from, and the ranges of their sizes."""

from dataclasses import dataclass

import pytest
import torch

from fairseq_ext.common.layers import embedding, linear
from fairseq_ext.common.sizes import check_rate, check_sizes

PAD = 1


@dataclass
class Size:
    embed_dim: int = 4
    heads: int = 2
    router_size: int = 0
    weight_dropout: float = 0.0
    share: bool = False


def checked(**values):
    check_sizes(Size(**values), may_be_zero=["router_size"], heads="--attention-heads")


def test_sizes_within_their_ranges():
    checked()
    checked(embed_dim=1, heads=1, weight_dropout=0, share=False)
    checked(router_size=3, weight_dropout=0.99, share=True)


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("embed_dim", 0, "--embed-dim 0: must be at least 1"),
        ("heads", -2, "--attention-heads -2: must be at least 1"),
        ("router_size", -1, "--router-size -1: must be at least 0"),
        ("weight_dropout", 1.0, r"--weight-dropout 1.0: must be in \[0, 1\)"),
        ("weight_dropout", -1, r"--weight-dropout -1: must be in \[0, 1\)"),
        ("weight_dropout", float("nan"), r"--weight-dropout nan: must be in \[0, 1\)"),
    ],
)
def test_sizes_out_of_range(field, value, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        checked(**{field: value})


def test_rate():
    check_rate("--dropout", 0.0)
    with pytest.raises(ValueError, match=r"^--dropout 1: must be in \[0, 1\)$"):
        check_rate("--dropout", 1)


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
