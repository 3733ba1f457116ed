"""``linear`` is F.linear, values and gradients of all orders, whoever computes them."""

import importlib.util
import itertools

import pytest
import torch
from torch.nn import functional as F

from fairseq_ext.common import products
from fairseq_ext.common.layers import Linear

SHAPES = [(6,), (1, 6), (5, 6), (3, 4, 6), (2, 1, 3, 6)]


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """However small the product; where torch has no oneDNN, both sides are F.linear."""
    monkeypatch.setattr(products, "WORTH_ONEDNN", 1)


@pytest.fixture
def calls(monkeypatch):
    """The products that oneDNN was asked for."""
    if products._linear is None:
        pytest.skip("torch without oneDNN")
    found, own = [], products._linear

    def counted(*args):
        found.append(args)
        return own(*args)

    monkeypatch.setattr(products, "_linear", counted)
    return found


def factors(shape, outputs=7, layout="plain"):
    inputs, weight, bias = torch.randn(shape), torch.randn(outputs, 6), torch.randn(outputs)
    if layout == "transposed":
        inputs = torch.randn(tuple(reversed(shape))).permute(*reversed(range(len(shape))))
        weight = torch.randn(6, outputs).t()
    elif layout == "sliced":
        inputs = torch.randn(*shape[:-1], 11)[..., 3:9]
        weight = torch.randn(outputs, 10)[:, 2:8]
    return inputs, weight, bias


def value_and_gradients(function, given, needed, grad):
    given = [one.detach().requires_grad_(wanted) for one, wanted in zip(given, needed)]
    found = function(*given)
    assert found.requires_grad == any(needed)
    if any(needed):
        found.backward(grad)
    return [found.detach(), *(one.grad for one in given)]


def check(given, needed=(True, True, True)):
    grad = torch.randn(*given[0].shape[:-1], given[1].size(0))
    for found, wanted in zip(
        value_and_gradients(products.linear, given, needed, grad),
        value_and_gradients(F.linear, given, needed, grad),
    ):
        assert (found is None) == (wanted is None)
        if wanted is not None:
            assert found.shape == wanted.shape
            torch.testing.assert_close(found, wanted, rtol=1e-6, atol=3e-6)


@pytest.mark.parametrize("layout", ["plain", "transposed", "sliced"])
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_torch(calls, shape, layout):
    given = factors(shape, layout=layout)
    check(given)
    check(given[:2])
    assert len(calls) == 4  # forwards and the gradient of the inputs, twice
    for _, weight, *_ in calls:  # for a part of a wider matrix oneDNN has but a loop
        assert weight.is_contiguous() or weight.t().is_contiguous()


@pytest.mark.parametrize("needed", list(itertools.product([False, True], repeat=3)))
def test_whoever_needs_a_gradient(needed):
    check(factors((3, 4, 6)), needed)


def test_repeated_backward_accumulates():
    given = [one.requires_grad_() for one in factors((5, 6))]
    loss = products.linear(*given).square().sum()
    loss.backward(retain_graph=True)
    once = [one.grad.clone() for one in given]
    loss.backward()
    for one, grad in zip(given, once):
        torch.testing.assert_close(one.grad, 2 * grad)


def test_gradient_of_an_expanded_gradient_and_of_a_gradient(calls):
    """sum().backward() hands down one number with strides of zero."""
    found = []
    for function in (products.linear, F.linear):
        torch.manual_seed(1)
        given = [one.requires_grad_() for one in factors((3, 4, 6))]
        first = torch.autograd.grad(function(*given).sum(), given, retain_graph=True)
        loss = function(*given).pow(3).mean()
        second = torch.autograd.grad(loss, given, create_graph=True)
        penalty = sum(one.square().sum() for one in second)
        found.append([*first, *second, *torch.autograd.grad(penalty, given)])
    for ours, theirs in zip(*found):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_without_gradients(calls):
    given = [one.requires_grad_() for one in factors((3, 6))]
    with torch.no_grad():
        found = products.linear(*given)
    assert found.grad_fn is None and len(calls) == 1
    torch.testing.assert_close(found, F.linear(*given), rtol=1e-6, atol=3e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions_are_torchs(calls, dtype):
    given = [one.to(dtype) for one in factors((3, 6))]
    assert torch.equal(products.linear(*given), F.linear(*given)) and not calls
    assert products.linear(*(one.to("meta") for one in given)).shape == (3, 7) and not calls


def test_autocast_is_torchs(calls):
    given = factors((3, 6))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = products.linear(*given)
        assert found.dtype == torch.bfloat16 and torch.equal(found, F.linear(*given))
    assert not calls
    assert products.linear(*given).dtype == torch.float32 and calls


def test_small_products_are_torchs(calls, monkeypatch):
    given = factors((3, 6))
    monkeypatch.setattr(products, "WORTH_ONEDNN", 3 * 6 * 7 + 1)
    assert torch.equal(products.linear(*given), F.linear(*given)) and not calls
    monkeypatch.setattr(products, "WORTH_ONEDNN", 3 * 6 * 7)
    products.linear(*given)
    assert calls


def test_layer(calls):
    """Linear has the names and values of torch's own layer."""
    stock = torch.nn.Linear(6, 7)
    layer = Linear(6, 7)
    layer.load_state_dict(stock.state_dict())
    inputs = torch.randn(2, 3, 6)
    torch.testing.assert_close(layer(inputs), stock(inputs), rtol=1e-6, atol=3e-6)
    assert len(calls) == 1


def test_switch(monkeypatch):
    """Read when the module is imported; here a second copy of it."""
    monkeypatch.setenv(products.SWITCH, "0")
    spec = importlib.util.spec_from_file_location("products_again", products.__file__)
    again = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(again)
    assert again._linear is again._arranged is None
