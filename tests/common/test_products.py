"""Products with a repeated matrix equal plain ones, whoever computes them."""

import pytest
import torch

from fairseq_ext.common import products


@pytest.mark.parametrize("rows", [1, 7, 64])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_repeated_linear(monkeypatch, dtype, transposed, rows):
    monkeypatch.setattr(products, "WORTH_ARRANGING", 1)
    weight = torch.randn(24, 40, dtype=dtype) if transposed else torch.randn(40, 24, dtype=dtype)
    weight = weight.t() if transposed else weight
    multiply = products.repeated_linear(weight, rows)
    wide = torch.randn(rows, 50, dtype=dtype)
    for x in (torch.randn(rows, 24, dtype=dtype), wide[:, 3:27]):
        torch.testing.assert_close(multiply(x), x @ weight.t())


def test_without_onednn(monkeypatch):
    monkeypatch.setattr(products, "WORTH_ARRANGING", 1)
    monkeypatch.setattr(products, "_arranged", None)
    weight, x = torch.randn(5, 3), torch.randn(2, 3)
    assert torch.equal(
        products.repeated_linear(weight, 2)(x), torch.nn.functional.linear(x, weight)
    )
