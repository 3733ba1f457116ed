"""Layers of --checkpoint-activations and --offload-activations have the gradients of others."""

import copy

import pytest
import torch
from fairseq.modules.checkpoint_activations import checkpoint_wrapper

BOTH = pytest.mark.parametrize("offload", [False, True], ids=["checkpoint", "offload"])


@pytest.fixture
def layers():
    """A layer, and the same one without gradients of its own."""
    torch.manual_seed(0)
    trained = torch.nn.Sequential(
        torch.nn.Linear(8, 8), torch.nn.Dropout(0.5), torch.nn.LayerNorm(8)
    )
    return trained, copy.deepcopy(trained).requires_grad_(False)


def gradients(layer, inputs, autocast=False):
    """{name: gradient} of a step with the same dropout for all."""
    torch.manual_seed(1)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        loss = layer(inputs)[..., :4].sum()
    loss.backward()
    return {name: parameter.grad for name, parameter in layer.named_parameters()}


@BOTH
@pytest.mark.parametrize("has_gradient", [False, True], ids=["frozen", "trained"])
@pytest.mark.parametrize("autocast", [False, True], ids=["float32", "autocast"])
def test_a_layer_has_its_gradients(layers, offload, has_gradient, autocast):
    """Its input has none behind frozen embeddings."""
    trained, _ = layers
    inputs = torch.randn(3, 5, 8, requires_grad=has_gradient)
    checkpointed = checkpoint_wrapper(copy.deepcopy(trained), offload_to_cpu=offload)
    expected = gradients(trained, inputs, autocast)
    assert len(expected) == 4
    gradient_of_inputs, inputs.grad = inputs.grad, None
    for name, gradient in gradients(checkpointed, inputs, autocast).items():
        assert torch.equal(gradient, expected[name])
    assert not has_gradient or torch.equal(inputs.grad, gradient_of_inputs)


@BOTH
def test_a_frozen_layer_has_none(layers, offload):
    _, frozen = layers
    checkpointed = checkpoint_wrapper(frozen, offload_to_cpu=offload)
    assert not checkpointed(torch.randn(3, 8)).requires_grad


def test_a_validation_has_no_gradients(layers):
    trained, _ = layers
    with torch.no_grad():
        assert not checkpoint_wrapper(trained)(torch.randn(3, 8)).requires_grad
