"""LSTMs: torch's kernel against the loop over the equations, in value and gradient."""

import pytest
import torch

from fairseq_ext.common.lstm import (
    LSTM,
    BidirectionalLSTM,
    lstm_cell,
    lstm_cell_backward,
    lstm_cell_forward,
)

UNITS = 12


def test_forget_gate_starts_open():
    """Gates i, f, c, o: the bias of f is one, all others are zero."""
    lstm = LSTM(5, UNITS)
    i, f, c, o = lstm.bias_ih_l0.chunk(4)
    assert f.eq(1).all() and not (i.any() or c.any() or o.any())
    assert not lstm.bias_hh_l0.any() and not lstm.bias_hh_l0.requires_grad
    lstm(torch.randn(2, 3, 5)).sum().backward()
    assert lstm.bias_hh_l0.grad is None


def test_a_cell_with_its_gradient_is_that_of_autograd():
    """Value and gradient of the functions that fill in arrays, against ``lstm_cell``."""
    torch.manual_seed(0)
    sums = torch.randn(2, 4 * UNITS, dtype=torch.float64, requires_grad=True)
    memory = torch.randn(2, UNITS, dtype=torch.float64, requires_grad=True)
    after = lstm_cell(sums, memory)
    upstream = [torch.randn_like(tensor) for tensor in after]
    expected = torch.autograd.grad(after, [sums, memory], upstream)
    gates, grad_sums = torch.empty_like(sums), torch.empty_like(sums)
    state, new_memory = (torch.empty_like(memory) for _ in range(2))
    with torch.no_grad():
        lstm_cell_forward(sums, memory, gates, new_memory, state)
        torch.testing.assert_close((state, new_memory), after)
        grad_memory = lstm_cell_backward(*upstream, gates, memory, new_memory, grad_sums)
    torch.testing.assert_close((grad_sums, grad_memory), expected)


@pytest.mark.parametrize("positions", [1, 5])
def test_torch_is_literal(positions):
    torch.manual_seed(0)
    lstm = LSTM(3, 4).double()
    inputs = torch.randn(2, positions, 3, dtype=torch.float64, requires_grad=True)
    care = torch.randn(2, positions, 4, dtype=torch.float64)
    trained = [parameter for parameter in lstm.parameters() if parameter.requires_grad]
    results = []
    for path in (lstm, lstm.literal):
        states = path(inputs)
        results.append([states, *torch.autograd.grad((states * care).sum(), [inputs, *trained])])
    for ours, literal in zip(*results):
        torch.testing.assert_close(ours, literal)


def test_a_carried_state_goes_on_where_it_ended():
    torch.manual_seed(0)
    lstm, inputs = LSTM(3, 4), torch.randn(2, 5, 3)
    first, before = lstm.carry(inputs[:, :2])
    second, _ = lstm.carry(inputs[:, 2:], before)
    torch.testing.assert_close(torch.cat([first, second], dim=1), lstm(inputs))


@pytest.mark.parametrize("literal", [False, True])
def test_backward_direction_begins_at_the_end_of_each_sentence(literal):
    torch.manual_seed(0)
    module, inputs = BidirectionalLSTM(3, 4), torch.randn(2, 5, 3)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    states = module(inputs, padding, literal)
    alone = module(inputs[1:, :3], padding[1:, :3], literal)
    torch.testing.assert_close(states[1:, :3], alone)
    flipped = module.backwards(inputs[1:, :3].flip(1)).flip(1)
    torch.testing.assert_close(alone[..., 4:], flipped)
