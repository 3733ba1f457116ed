"""Dropout of common/dropout.py: its rate, its mean, its gradient, and where it is torch's."""

import pytest
import torch

from fairseq_ext.common.dropout import dropout, dropout_mask


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.9])
def test_rate_and_mean(rate, dtype):
    """Four million values: their mean stays, within five standard deviations of the share."""
    torch.manual_seed(1)
    count = 4_000_003
    dropped = dropout(torch.ones(count, dtype=dtype), rate)
    assert dropped.dtype == dtype
    zero, factor = dropped.unique().tolist()
    rounding = 1e-4 if torch.finfo(dtype).bits > 16 else 2**-8
    assert zero == 0 and factor == pytest.approx(1 / (1 - rate), rel=rounding)
    share = dropped.eq(0).double().mean().item()
    expected = 1 - 1 / factor
    assert abs(share - expected) < 5 * (expected * (1 - expected) / count) ** 0.5


def test_every_value_is_drawn_by_itself():
    """Neighbours, lanes of one random number, rows and columns agree as often as by chance."""
    torch.manual_seed(1)
    ones = dropout_mask(torch.ones(512, 512), 0.5).gt(0).flatten()
    for shift in (1, 2, 3, 4, 8, 512, 513):
        agree = ones.eq(ones.roll(shift)).double().mean().item()
        assert abs(agree - 0.5) < 5 * 0.5 / 512


def test_gradient_is_that_of_the_kept_ones():
    torch.manual_seed(1)
    values = torch.randn(7, 9, dtype=torch.double, requires_grad=True)
    torch.manual_seed(2)
    dropped = dropout(values, 0.3)
    (gradient,) = torch.autograd.grad(dropped.sum(), values)
    torch.manual_seed(2)
    assert torch.equal(gradient, dropout_mask(values, 0.3))
    assert torch.equal(dropped, values * gradient) and 0 < gradient.eq(0).sum() < 63


def test_the_seed_decides():
    values = torch.ones(33)
    torch.manual_seed(3)
    first, second = dropout(values, 0.5), dropout(values, 0.5)
    torch.manual_seed(3)
    assert torch.equal(dropout(values, 0.5), first) and not torch.equal(first, second)


def test_nothing_is_dropped_without_need():
    values, before = torch.randn(5), torch.get_rng_state()
    assert torch.equal(dropout(values, 0.5, training=False), values)
    assert torch.equal(dropout(values, 0.0), values)
    assert torch.equal(torch.get_rng_state(), before)
    assert dropout(torch.ones(8), 1.0).eq(0).all() and dropout(torch.ones(0, 3), 0.5).shape == (
        0,
        3,
    )


@pytest.mark.skipif(
    not hasattr(torch, "set_default_device"), reason="torch before 2.0 has no default device"
)
def test_values_are_dropped_where_they_are():
    values = torch.ones(9)
    with torch.device("meta"):  # where a program creates tensors by default
        dropped = dropout(values, 0.5)
    assert dropped.device.type == "cpu" and set(dropped.tolist()) <= {0.0, 2.0}
