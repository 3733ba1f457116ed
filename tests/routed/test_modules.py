"""Every equation against the NumPy reference, value and gradient, on random sizes.

Legend: B sentences, S source positions, T target positions, I input, H units, n shared blocks.
"""

import numpy as np
import pytest
import torch
from routed.support import (
    TASKS,
    assert_gradients,
    block_arrays,
    both_ways,
    gradient,
    randomise,
    unit_arrays,
    value,
)

from fairseq_ext.routed.modules import BidirectionalUnit, Blocks, RoutedUnit, Router, UnitStack
from reference import routed as reference

BATCHES = [([1], [1]), ([4], [1]), ([1], [4]), ([5, 2, 1], [1, 4, 3])]
LITERAL = pytest.mark.parametrize("literal", [False, True], ids=["fused", "literal"])


def numbers(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("rows, inputs, states, shared", [(1, 1, 2, 1), (3, 4, 6, 3), (2, 5, 4, 2)])
def test_router(rows, inputs, states, shared):
    router = randomise(Router(inputs, states, shared, 3), 1)
    x, h = numbers(rows, inputs, seed=2), numbers(rows, states, seed=3)
    unit = RoutedUnit(inputs, states // 2, shared, TASKS, 3)
    unit.router = router
    arrays = unit_arrays(unit, TASKS[0])["router"]
    shares = router(x, h)
    for row in range(rows):
        expected = reference.router(x[row].numpy(), h[row].numpy(), arrays)
        np.testing.assert_allclose(value(shares[row]), expected, atol=1e-12)
    assert torch.allclose(shares.sum(dim=1), torch.ones(rows, dtype=torch.float64))


@pytest.mark.parametrize("rows, inputs, units", [(1, 1, 1), (3, 4, 2), (2, 3, 5)])
def test_block(rows, inputs, units):
    blocks = randomise(Blocks(3, inputs, units), 1)
    x, h = numbers(rows, inputs, seed=2), numbers(rows, units, seed=3)
    for number in range(3):
        arrays, states = block_arrays(blocks, number, value), blocks.step(number, x, h)
        for row in range(rows):
            expected = reference.block(x[row].numpy(), h[row].numpy(), arrays)
            np.testing.assert_allclose(value(states[row]), expected, atol=1e-12)


UNITS = [(0, 3, 2, 4), (1, 1, 1, 1), (1, 2, 3, 3), (3, 4, 3, 5), (3, 4, 3, 1)]


@LITERAL
@pytest.mark.parametrize("shared, inputs, units, length", UNITS, ids=str)
def test_unit(shared, inputs, units, length, literal):
    """States, tau and all gradients, from a state that is not zero."""
    rng = np.random.default_rng(length)
    unit = randomise(RoutedUnit(inputs, units, shared, TASKS, 3), 4)
    x = numbers(2, length, inputs, seed=2).requires_grad_()
    first = numbers(2, unit.output_size, seed=3).requires_grad_()
    weights, tau_weights = numbers(2, length, unit.output_size, seed=5), numbers(2, length, shared)
    arrays = {"x": value(x), "first": value(first), **unit_arrays(unit, TASKS[1])}

    def run(row):
        return reference.unit(arrays["x"][row], arrays["first"][row], arrays)

    def loss():
        total = 0.0
        for row in range(2):
            states, tau = run(row)
            total += (states * value(weights[row])).sum() + (tau * value(tau_weights[row])).sum()
        return total

    states, tau = unit(x, TASKS[1], unit.start(first), literal)
    for row in range(2):
        expected = run(row)
        np.testing.assert_allclose(value(states[row]), expected[0], atol=1e-12)
        np.testing.assert_allclose(value(tau[row]), expected[1], atol=1e-12)
    ((states * weights).sum() + (tau * tau_weights).sum()).backward()
    gradients = {"x": gradient(x), "first": gradient(first)}
    assert_gradients(loss, arrays, {**gradients, **unit_arrays(unit, TASKS[1], gradient)}, rng)
    assert unit.own[TASKS[0]].bias.grad is None, "the other task's block is not used"


@LITERAL
@pytest.mark.parametrize("shared", [0, 2])
def test_bidirectional_unit(shared, literal):
    layer = randomise(BidirectionalUnit(3, 2, shared, TASKS, 2), 5)
    lengths, x = [4, 1, 2], numbers(3, 4, 3, seed=6)
    padding = torch.arange(4) >= torch.tensor(lengths).unsqueeze(1)
    outputs, *_ = layer(x, padding, TASKS[0], literal)
    for row, length in enumerate(lengths):
        expected = reference.bidirectional(x[row, :length].numpy(), both_ways(layer, TASKS[0]))
        np.testing.assert_allclose(value(outputs[row, :length]), expected, atol=1e-12)


@LITERAL
def test_with_one_shared_block_the_shared_part_is_a_gru(literal):
    """tau = 1 for the only shared block: its half of the state is that of a GRU."""
    unit = randomise(RoutedUnit(4, 3, 1, TASKS), 10)
    x = numbers(2, 6, 4, seed=11)
    states, tau = unit(x, TASKS[0], literal=literal)
    assert torch.equal(tau, torch.ones(2, 6, 1, dtype=torch.float64))
    plain = RoutedUnit(4, 3, 0).double()
    plain.own["common"].load_state_dict(unit.shared.state_dict())
    assert torch.allclose(states[..., :3], plain(x)[0], atol=1e-12)
    plain.own["common"].load_state_dict(unit.own[TASKS[0]].state_dict())
    assert torch.allclose(states[..., 3:], plain(x)[0], atol=1e-12)


@LITERAL
def test_with_an_open_reset_gate_it_is_the_gru_of_torch(literal):
    """With r = 1 it does not matter on which side of the product the reset gate stands."""
    unit = randomise(RoutedUnit(4, 3, 1, TASKS), 12)
    blocks, theirs = unit.shared, torch.nn.GRU(4, 3, batch_first=True).double()
    with torch.no_grad():
        blocks.bias[0, 3:6] = 1000
        weights = {"weight_ih_l0": blocks.weight_input, "weight_hh_l0": blocks.weight_state}
        for name, ours in weights.items():
            update, reset, candidate = ours[0].chunk(3)
            getattr(theirs, name).copy_(torch.cat([reset, update, candidate]))
        update, reset, candidate = blocks.bias[0].chunk(3)
        theirs.bias_ih_l0.copy_(torch.cat([reset, update, candidate]))
        theirs.bias_hh_l0.zero_()
    x = numbers(2, 6, 4, seed=13)
    assert torch.allclose(unit(x, TASKS[0], literal=literal)[0][..., :3], theirs(x)[0], atol=1e-12)


def test_unit_without_tasks_and_errors():
    unit = RoutedUnit(4, 3, 2)
    assert unit(torch.randn(2, 5, 4))[0].shape == (2, 5, 6)
    with pytest.raises(ValueError, match="task 'de-en': the unit has blocks for xx-yy, xx-zz"):
        RoutedUnit(4, 3, 2, TASKS)(torch.randn(2, 5, 4), "de-en")


def test_units_in_place_of_a_bidirectional_gru_of_two_layers():
    """As docs/routed.md shows it, without tasks."""
    stack = UnitStack([BidirectionalUnit(4, 3), BidirectionalUnit(12, 3)], dropout=0.5).eval()
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    x = torch.randn(2, 5, 4)
    states, tau = stack(x, padding)
    assert states.shape == (2, 5, 12) and tau[1][0].shape == (2, 5, 3)
    literal, _ = stack(x, padding, literal=True)
    assert torch.allclose(states[~padding], literal[~padding], atol=1e-6)
    assert torch.allclose(states[1, :3], stack(x[1:, :3], padding[1:, :3])[0][0], atol=1e-6)
