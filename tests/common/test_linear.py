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
    arguments, real = [], products._linear

    def counted(*args):
        arguments.append(args)
        return real(*args)

    monkeypatch.setattr(products, "_linear", counted)
    return arguments


def factors(shape, outputs=7, layout="plain"):
    inputs, weight, bias = torch.randn(shape), torch.randn(outputs, 6), torch.randn(outputs)
    if layout == "transposed":
        inputs = torch.randn(tuple(reversed(shape))).permute(*reversed(range(len(shape))))
        weight = torch.randn(6, outputs).t()
    elif layout == "sliced":
        inputs = torch.randn(*shape[:-1], 11)[..., 3:9]
        weight = torch.randn(outputs, 10)[:, 2:8]
        bias = torch.randn(2 * outputs)[::2]
    return inputs, weight, bias


def value_and_gradients(function, leaves, needed, grad):
    leaves = [
        tensor.detach().requires_grad_(is_needed) for tensor, is_needed in zip(leaves, needed)
    ]
    output = function(*leaves)
    assert output.requires_grad == any(needed)
    if any(needed):
        output.backward(grad)
    return [output.detach(), *(tensor.grad for tensor in leaves)]


def check(inputs, needed=(True, True, True)):
    grad = torch.randn(*inputs[0].shape[:-1], inputs[1].size(0))
    for tensor, expected in zip(
        value_and_gradients(products.linear, inputs, needed, grad),
        value_and_gradients(F.linear, inputs, needed, grad),
    ):
        assert (tensor is None) == (expected is None)
        if expected is not None:
            assert tensor.shape == expected.shape
            torch.testing.assert_close(tensor, expected, rtol=1e-6, atol=3e-6)


@pytest.mark.parametrize("layout", ["plain", "transposed", "sliced"])
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_torch(calls, shape, layout):
    inputs = factors(shape, layout=layout)
    check(inputs)
    check(inputs[:2])
    assert len(calls) == 4  # forwards and the gradient of the inputs, twice
    for _, weight, *_ in calls:  # for a part of a wider matrix oneDNN has but a loop
        assert weight.is_contiguous() or weight.t().is_contiguous()


@pytest.mark.parametrize("needed", list(itertools.product([False, True], repeat=3)))
def test_whoever_needs_a_gradient(needed):
    check(factors((3, 4, 6)), needed)


def test_repeated_backward_accumulates():
    inputs = [tensor.requires_grad_() for tensor in factors((5, 6))]
    loss = products.linear(*inputs).square().sum()
    loss.backward(retain_graph=True)
    once = [tensor.grad.clone() for tensor in inputs]
    loss.backward()
    for tensor, grad in zip(inputs, once):
        torch.testing.assert_close(tensor.grad, 2 * grad)


def test_gradient_of_an_expanded_gradient_and_of_a_gradient(calls):
    """sum().backward() hands down one number with strides of zero."""
    gradients = []
    for function in (products.linear, F.linear):
        torch.manual_seed(1)
        inputs = [tensor.requires_grad_() for tensor in factors((3, 4, 6))]
        first = torch.autograd.grad(function(*inputs).sum(), inputs, retain_graph=True)
        loss = function(*inputs).pow(3).mean()
        second = torch.autograd.grad(loss, inputs, create_graph=True)
        penalty = sum(tensor.square().sum() for tensor in second)
        gradients.append([*first, *second, *torch.autograd.grad(penalty, inputs)])
    for ours, theirs in zip(*gradients):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_without_gradients(calls):
    inputs = [tensor.requires_grad_() for tensor in factors((3, 6))]
    with torch.no_grad():
        output = products.linear(*inputs)
    assert output.grad_fn is None and len(calls) == 1
    torch.testing.assert_close(output, F.linear(*inputs), rtol=1e-6, atol=3e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions_are_torchs(calls, dtype):
    inputs = [tensor.to(dtype) for tensor in factors((3, 6))]
    assert torch.equal(products.linear(*inputs), F.linear(*inputs)) and not calls
    assert products.linear(*(tensor.to("meta") for tensor in inputs)).shape == (3, 7) and not calls


def test_autocast_is_torchs(calls):
    inputs = factors((3, 6))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = products.linear(*inputs)
        assert output.dtype == torch.bfloat16 and torch.equal(output, F.linear(*inputs))
    assert not calls
    assert products.linear(*inputs).dtype == torch.float32 and calls


def test_small_products_are_torchs(calls, monkeypatch):
    inputs = factors((3, 6))
    monkeypatch.setattr(products, "WORTH_ONEDNN", 3 * 6 * 7 + 1)
    assert torch.equal(products.linear(*inputs), F.linear(*inputs)) and not calls
    monkeypatch.setattr(products, "WORTH_ONEDNN", 3 * 6 * 7)
    products.linear(*inputs)
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
