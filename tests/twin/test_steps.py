"""Loops whose gradients are made after them, against the same loops by autograd alone."""

import pytest
import torch
from torch.nn import functional as F

from fairseq_ext.common import products
from fairseq_ext.common.lstm import lstm_cell
from fairseq_ext.twin.stock.steps import linear_steps, lstm_cell_step, position_steps

ROWS, UNITS, PLACES, STEPS = 3, 5, 4, 6


def loop(parts, fast):
    """A loop with all that there is: a cell, a product with a matrix, a look at a source."""
    state, memory, weight, source = parts
    if fast:
        product, (compare, mix), cell = (
            linear_steps(weight, ROWS),
            position_steps(source),
            lstm_cell_step,
        )
    else:
        cell = lstm_cell

        def product(x):
            return F.linear(x, weight)

        def compare(x):
            return (source @ x.unsqueeze(2)).squeeze(2)

        def mix(attention):
            return (attention.unsqueeze(1) @ source).squeeze(1)

    states = []
    for _ in range(STEPS):
        seen = mix(compare(state).softmax(dim=1))
        state, memory = cell(product(torch.cat([state, seen], dim=1)), memory)
        states.append(state)
    return torch.stack(states)


def random_parts(dtype):
    torch.manual_seed(0)
    shapes = (ROWS, UNITS), (ROWS, UNITS), (4 * UNITS, 2 * UNITS), (ROWS, PLACES, UNITS)
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("arranged", [False, True])
def test_gradients_are_those_of_autograd(arranged, monkeypatch):
    dtype = torch.float32 if arranged else torch.float64
    if arranged:
        monkeypatch.setattr(products, "WORTH_ARRANGING", 1)
    parts = random_parts(dtype)
    upstream = torch.randn(STEPS, ROWS, UNITS, dtype=dtype)
    fused, literal = (loop(parts, fast) for fast in (True, False))
    torch.testing.assert_close(fused, literal)
    for gradient, expected in zip(
        *(torch.autograd.grad(out, parts, upstream) for out in (fused, literal))
    ):
        torch.testing.assert_close(gradient, expected)


def test_going_back_twice():
    """Nothing is left over from the first time."""
    parts = random_parts(torch.float64)
    total = loop(parts, True).sum()
    once, again = (torch.autograd.grad(total, parts, retain_graph=True) for _ in range(2))
    for gradient, repeated in zip(once, again):
        assert torch.equal(gradient, repeated)


def test_only_what_is_asked_for():
    """A matrix that is fixed, a loop whose last steps nobody uses, no gradients at all."""
    for fixed in range(4):
        parts = random_parts(torch.float64)
        parts[fixed].requires_grad_(False)
        asked = [part for part in parts if part.requires_grad]
        computed, expected = (
            torch.autograd.grad(loop(parts, fast)[:2].sum(), asked) for fast in (True, False)
        )
        for gradient, reference in zip(computed, expected):
            torch.testing.assert_close(gradient, reference)
    with torch.no_grad():
        assert not loop(parts, True).requires_grad


def test_gradients_inside_of_autocast_are_not_rounded():
    """Of a loop that ran without it, as those of --amp do."""
    parts = random_parts(torch.float32)
    loss = loop(parts, fast=True).square().sum()
    outside = torch.autograd.grad(loss, parts)
    loss = loop(parts, fast=True).square().sum()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = torch.autograd.grad(loss, parts)
    assert all(torch.equal(*gradients) for gradients in zip(outside, inside))
