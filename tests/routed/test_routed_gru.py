"""The fused loops are the literal steps: values, all gradients, every kind of model.

Legend: B sentences, S source positions, T target positions.
"""

import pytest
import torch
from routed.support import KINDS, TASKS, Case
from toy_sentences import PAD, rows

from fairseq_ext.routed import modules
from fairseq_ext.routed import routed_gru as loops
from fairseq_ext.routed.modules import RoutedUnit
from properties import check_same_numbers

BATCHES = [([1], [1]), ([6], [1]), ([1], [7]), ([8, 3, 1, 8], [5, 9, 2, 1])]
PRECISIONS = [(torch.float64, 1e-9), (torch.float32, 2e-5)]


def outcome(case, literal, dtype=torch.float64, train=False):
    """Loss, logits of real positions, attention, and gradients by name."""
    case.modules.to(dtype).train(train)
    case.modules.zero_grad()
    torch.manual_seed(3)
    logits, weights = case.outcome(literal=literal)
    loss = case.loss(logits.double())
    (loss + (weights * torch.arange(weights.size(2))).sum()).backward()
    real = rows(case.targets).ne(PAD)
    named = case.modules.named_parameters()
    grads = {name: p.grad.clone() for name, p in named if p.grad is not None}
    return {"loss": loss, "logits": logits[real], "weights": weights[real], **grads}


@pytest.mark.parametrize("precision", PRECISIONS, ids=["double", "single"])
@pytest.mark.parametrize("lengths", BATCHES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_paths_agree(kind, lengths, precision):
    dtype, tolerance = precision
    case = Case(kind, 1, *lengths)
    check_same_numbers(outcome(case, False, dtype), outcome(case, True, dtype), tolerance)


@pytest.mark.parametrize("kind", ["routed, stacked", "partial"])
def test_paths_agree_with_dropout(kind):
    """Both draw the same masks: on the embeddings, between layers and on the readout."""
    case = Case(kind, 2, [4, 2], [3, 5])
    dropped = [case.encoder, case.encoder.units, case.decoder]
    for module in dropped:
        module.dropout = 0.3
    expected = outcome(case, True, train=True)
    check_same_numbers(outcome(case, False, train=True), expected, 1e-9)
    for module in dropped:
        module.dropout = 0.0
        without = outcome(case, False, train=True)["loss"]
        assert abs(without - expected["loss"]) > 1e-3
        module.dropout = 0.3


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_of_the_task_has_a_gradient_and_no_other(kind):
    case = Case(kind, 3, [5, 3], [4, 2])
    computed = outcome(case, False)
    for name, _ in case.modules.named_parameters():
        assert (name in computed) == (f"own.{TASKS[0]}." not in name), name
    for name, grad in computed.items():
        assert grad.abs().max() > 1e-9, name


@pytest.mark.parametrize("left", [False, True], ids=["right-padded", "left-padded"])
def test_no_gradient_reaches_padding(left):
    case = Case("routed", 4, [5, 2, 1], [2, 4, 3])
    case.loss(case.outcome(left)[0]).backward()
    for table in (case.table, case.target.embedding):
        assert not table.weight.grad[PAD].any() and table.weight.grad.any()


def test_frozen_parts_get_no_gradient_and_do_not_stop_the_others():
    case = Case("routed", 5, [4, 2], [3, 5])
    whole = outcome(case, False)
    for module in (case.encoder.units.units[0].forwards.router, case.decoder.units[0].shared):
        module.requires_grad_(False)
        for parameter in module.parameters():
            parameter.grad = None
    part = outcome(case, False)
    assert 10 < len(part) < len(whole)
    check_same_numbers(part, {name: whole[name] for name in part}, 1e-12)


def test_gradients_may_be_taken_twice():
    """retain_graph: the backward pass leaves what the forward pass kept as it was."""
    unit = RoutedUnit(3, 4, 2).double()
    states, tau = unit(torch.randn(2, 5, 3, dtype=torch.float64))
    loss = states.pow(2).sum() + tau.pow(3).sum()
    first, again = (
        torch.autograd.grad(loss, list(unit.parameters()), retain_graph=True) for _ in range(2)
    )
    assert all(torch.equal(gradient, repeated) for gradient, repeated in zip(first, again))


def test_backward_gives_the_memory_back():
    """Nothing of a step is kept by its graph once the gradients are there."""
    unit = RoutedUnit(3, 4, 2)
    states, _ = unit(torch.randn(2, 5, 3))
    node = states.grad_fn.next_functions[0][0]
    assert len(node.saved_tensors) > 5
    states.sum().backward()
    with pytest.raises(RuntimeError, match="already been freed"):
        node.saved_tensors  # noqa: B018


def test_half_precision_by_autocast():
    """What --amp does: bfloat16 products around the loop change all numbers but little."""
    case = Case("routed, stacked", 6, [8, 3, 1, 8], [5, 9, 2, 1])
    expected = outcome(case, False, torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = outcome(case, False, torch.float32)
    assert half["loss"].item() == pytest.approx(expected["loss"].item(), rel=0.03)
    for name, exact in expected.items():
        # of each by itself: next to the loss, which is the largest, every gradient would be small
        assert (half[name] - exact).abs().max() < 0.3 * exact.abs().max(), name


def reset_gate_is_left_out(monkeypatch):
    """The candidate as the paper prints it."""
    real = modules.Blocks.step

    def twin(self, number, inputs, before):
        reset = slice(self.weight_state.size(2), 2 * self.weight_state.size(2))
        with torch.no_grad():
            bias = self.bias[number, reset].clone()
            self.bias[number, reset] = 1000
        state = real(self, number, inputs, before)
        with torch.no_grad():
            self.bias[number, reset] = bias
        return state

    monkeypatch.setattr(modules.Blocks, "step", twin)


def router_sees_no_state(monkeypatch):
    real = loops.LayerPass._route

    def twin(self, t):
        outputs, self.outputs = self.outputs, torch.zeros_like(self.outputs)
        real(self, t)
        self.outputs = outputs

    monkeypatch.setattr(loops.LayerPass, "_route", twin)


def router_gets_no_gradient_through_the_inputs(monkeypatch):
    real = loops.LayerPass._route_backward

    def twin(self, t, grad_tau):
        return real(self, t, 0.5 * grad_tau)

    monkeypatch.setattr(loops.LayerPass, "_route_backward", twin)


@pytest.mark.parametrize(
    "twin, name",
    [
        (reset_gate_is_left_out, "logits"),
        (router_sees_no_state, "logits"),
        (router_gets_no_gradient_through_the_inputs, "router"),
    ],
)
def test_broken_twin_is_noticed(monkeypatch, twin, name):
    case = Case("routed", 1, [4, 2], [3, 5])
    twin(monkeypatch)
    computed, expected = outcome(case, False), outcome(case, True)
    differing = {key for key in expected if not torch.allclose(computed[key], expected[key])}
    assert any(name in key for key in differing)
