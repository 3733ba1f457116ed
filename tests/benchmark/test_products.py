"""Operations are counted; limits are the longer of two times."""

import pytest
import torch
from speed import limits
from speed.products import CUDNN, Products

from fairseq_ext.common import products


def test_products_are_counted(monkeypatch):
    left = torch.randn(3, 5, requires_grad=True)
    right = torch.randn(5, 7, requires_grad=True)
    with Products(1) as counted:
        (left @ right).sum().backward()
    assert counted.operations() == 3 * 2 * 3 * 5 * 7
    with Products(1) as counted:
        torch.nn.functional.linear(torch.randn(2, 3, 5), right.t(), torch.randn(7))
        torch.bmm(torch.randn(4, 2, 3), torch.randn(4, 3, 6))
    assert counted.operations() == 2 * (2 * 3 * 5 * 7 + 4 * 2 * 3 * 6)
    with Products(1) as counted:
        torch.zeros(4, 2, 6).baddbmm_(torch.randn(4, 2, 3), torch.randn(4, 3, 6))
        torch.mm(torch.randn(2, 3), torch.randn(3, 5), out=torch.empty(2, 5))
        products.repeated_linear(torch.randn(512, 256), 2)(torch.randn(2, 256))
    assert counted.operations() == 2 * (4 * 2 * 3 * 6 + 2 * 3 * 5 + 2 * 256 * 512)
    assert counted.seconds(1) > 0
    monkeypatch.setattr(products, "WORTH_ONEDNN", 1)
    with Products(1) as counted:
        products.linear(left, right.t(), torch.randn(7)).square().sum().backward()
    assert counted.operations() == 3 * 2 * 3 * 5 * 7
    assert counted.seconds(1) > 0
    lstm, inputs = torch.nn.LSTM(6, 5), torch.randn(7, 2, 6, requires_grad=True)
    with Products(1) as counted:
        lstm(inputs)[0].sum().backward()
    assert counted.operations() == 3 * 2 * 7 * 2 * 4 * 5 * (6 + 5)


def test_products_of_cudnn_are_counted():
    """Without a GPU: its arguments, as its schema places them. Two directions, packed rows."""
    for function, (_, first, place) in CUDNN.items():
        schema = function._schema
        assert schema.arguments[first].name == "batch_first"
        assert schema.arguments[place].name == "batch_sizes"
        assert [argument.name for argument in schema.arguments[:3]] == [
            "input",
            "weight",
            "weight_stride0",
        ]
    weights = [torch.empty(20, 6), torch.empty(20, 5), torch.empty(20), torch.empty(20)] * 2
    products = Products(1)
    products._cudnn(torch.empty(9, 6), weights, 4, False, [4, 3, 2], 2)
    assert products.operations() == 2 * 2 * 2 * 9 * 20 * (6 + 5)
    unpacked = Products(1)
    unpacked._cudnn(torch.empty(3, 4, 6), weights[:4], 4, False, [], 1)
    turned = Products(1)
    turned._cudnn(torch.empty(4, 3, 6), weights[:4], 4, True, [], 1)
    assert turned.counts == unpacked.counts
    assert unpacked.operations() == 2 * 12 * 20 * (6 + 5)


def test_products_of_every_layout_are_timed():
    """Expanded, transposed, one-dimensional."""
    expanded = torch.randn(1, 3, 6).expand(4, 3, 6)
    with Products(1) as products:
        torch.bmm(torch.randn(2, 4, 3).transpose(0, 1), expanded)
        torch.mv(torch.randn(3, 5).t(), torch.randn(3))
        torch.randn(2, 3).bfloat16() @ torch.randn(4, 3).bfloat16().t()
    assert products.operations() == 2 * (4 * 2 * 3 * 6 + 15 + 24)
    assert products.seconds(1) > 0


def test_weights_are_counted_once_and_their_traffic_every_time():
    weight, states = torch.randn(7, 5), torch.randn(3, 5)
    with Products(1) as products:
        for _ in range(4):
            torch.nn.functional.linear(states, weight)
        torch.bmm(torch.randn(4, 2, 3), torch.randn(4, 3, 6))  # attention: no weights
    assert products.traffic == 4 * 4 * weight.numel()
    assert list(products.weights.values()) == [4 * weight.numel()]


@pytest.mark.parametrize("arithmetic, bound", [(2.0, "products"), (1e-12, "memory")])
def test_limit_is_the_longer_time(arithmetic, bound, monkeypatch):
    monkeypatch.setattr(Products, "seconds", lambda self: arithmetic)
    monkeypatch.setattr(limits, "bandwidth", lambda size, device: 64.0 * size)
    seconds, limit = limits.best_training_time(Products(1), 1000, 3, "cpu")
    assert limit == bound
    # 32 bytes of each parameter at 64 times 16,000 bytes a second, in three updates
    assert seconds == pytest.approx(max(arithmetic, 3 * 32 * 1000 / (64 * 16 * 1000)))
    searched = Products(1)
    searched.traffic, searched.weights = 8000, {1: 500, 2: 300}
    seconds, _ = limits.best_translation_time(searched, "cpu")
    assert seconds == pytest.approx(max(arithmetic, 8000 / (64 * 800)))


def test_rates_of_the_machine(monkeypatch):
    """Both are positive; how large is not tested."""
    monkeypatch.setattr(limits, "fastest", lambda compute, device: compute() is None or 0.5)
    assert limits.product_rate("bf16", "cpu") == 2 * 1024**3 / 0.5
    assert limits.bandwidth(1 << 20, "cpu") == (1 << 20) / 0.5
