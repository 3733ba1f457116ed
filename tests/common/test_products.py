"""Products with a repeated matrix equal plain ones, whoever computes them."""

import copy
import pickle

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


def test_a_bias_in_any_memory_layout(monkeypatch):
    monkeypatch.setattr(products, "WORTH_ARRANGING", 1)
    monkeypatch.setattr(products, "FEW_ROWS", 1)
    weight, x = torch.nn.Parameter(torch.randn(40, 24), requires_grad=False), torch.randn(5, 24)
    for bias in (torch.randn(80)[::2], torch.randn(1).expand(40)):
        expected = torch.nn.functional.linear(x, weight, bias)
        torch.testing.assert_close(products.repeated_linear(weight, 5, bias)(x), expected)
        with torch.no_grad(), products.WeightCache().active():
            for _ in range(3):
                torch.testing.assert_close(products.linear(x, weight, bias), expected)


def test_without_onednn(monkeypatch):
    monkeypatch.setattr(products, "WORTH_ARRANGING", 1)
    monkeypatch.setattr(products, "_arranged", None)
    weight, x = torch.randn(5, 3), torch.randn(2, 3)
    assert torch.equal(
        products.repeated_linear(weight, 2)(x), torch.nn.functional.linear(x, weight)
    )


def test_weights_at_rest_are_arranged_once(monkeypatch):
    monkeypatch.setattr(products, "WORTH_ARRANGING", 1)
    monkeypatch.setattr(products, "FEW_ROWS", 14)
    weight = torch.nn.Parameter(torch.randn(40, 24), requires_grad=False)
    bias, x = torch.randn(40), torch.randn(2, 7, 24)
    expected = torch.nn.functional.linear(x, weight, bias)
    arranged = []
    arrange = products._arranged
    if arrange is None:
        pytest.skip("torch was built without oneDNN")
    monkeypatch.setattr(products, "_arranged", lambda *a: arranged.append(a) or arrange(*a))
    with torch.no_grad(), products.WeightCache().active():
        for _ in range(4):
            torch.testing.assert_close(products.linear(x, weight, bias), expected)
        assert len(arranged) == 1
        for _ in range(4):  # a matrix that the caller made may be another one next time
            products.linear(x, weight * 1, bias)
        few = torch.nn.Parameter(torch.randn(40, 24), requires_grad=False)
        for _ in range(4):  # not worth it
            products.linear(x[:1], few, bias)
        assert len(arranged) == 1
        with torch.enable_grad():
            assert products.active_cache() is None
    weight.add_(1)  # afterwards it may change
    with torch.no_grad():
        output = products.linear(x, weight, bias)
    torch.testing.assert_close(output, torch.nn.functional.linear(x, weight, bias))
    assert products.active_cache() is None


def test_computed_once_for_each_module_and_names():
    calls = []

    def make():
        calls.append(1)
        return torch.ones(2)

    owner = torch.nn.Identity()
    with torch.no_grad(), products.WeightCache().active():
        first = products.compute_once(make, owner)
        assert products.compute_once(make, owner) is first
        products.compute_once(make, owner, 1)
        with products.WeightCache().active():  # another search has values of its own
            assert products.compute_once(make, owner) is not first
        assert products.compute_once(make, owner) is first
        with torch.enable_grad():
            assert products.compute_once(make, owner) is not first
    products.compute_once(make, owner)
    assert len(calls) == 5


@pytest.mark.skipif(products._arranged is None, reason="torch without oneDNN")
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda entry: pickle.loads(pickle.dumps(entry))])
def test_a_copy_has_nothing_of_the_search(copied):
    """torch copies no arranged matrix, and programs copy generators, which hold one."""
    cache, weight = products.WeightCache(), torch.nn.Parameter(torch.randn(600, 300))
    with torch.no_grad(), cache.active():
        for _ in range(2):
            products.linear(torch.randn(8, 300), weight)
    assert cache.arranged[weight] is not None and not copied(cache).arranged
