"""Gradients of additive attention, step by step, against autograd.

Dimensions: B sentences, S source positions, T steps, A attention.
"""

import torch

from fairseq_ext.common.attention_gradient import AdditiveScores, by_position

SENTENCES, POSITIONS, STEPS, WIDTH = 3, 5, 4, 6


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def test_scores_differ_from_the_equation_by_a_constant():
    """e_i = energy . tanh(keys_i + query), up to a number that softmax does not see."""
    torch.manual_seed(0)
    keys, energy, query = draw(SENTENCES, POSITIONS, WIDTH), draw(WIDTH), draw(SENTENCES, WIDTH)
    expected = torch.tanh(keys + query.unsqueeze(1)) @ energy
    difference = AdditiveScores(keys, energy).scores(query) - expected
    torch.testing.assert_close(difference, difference[:, :1].expand_as(difference))


def test_gradients_over_several_steps_are_those_of_autograd():
    torch.manual_seed(0)
    keys = draw(SENTENCES, POSITIONS, WIDTH).requires_grad_()
    energy, queries = draw(WIDTH).requires_grad_(), draw(STEPS, SENTENCES, WIDTH).requires_grad_()
    upstream = draw(STEPS, SENTENCES, POSITIONS)
    scores = torch.tanh(keys + queries.unsqueeze(2)) @ energy  # (T, B, S)
    loss = (scores.softmax(dim=2) * upstream).sum()
    slopes, *expected = torch.autograd.grad(loss, [scores, keys, energy, queries])
    attention = AdditiveScores(keys.detach(), energy.detach())
    attention.start_backward()
    grad_queries = torch.empty_like(queries)
    for step in reversed(range(STEPS)):
        grad_queries[step] = attention.backward(queries[step].detach(), slopes[step])
    for ours, autograd in zip((*attention.gradients(), grad_queries), expected):
        torch.testing.assert_close(ours, autograd)


def test_products_with_all_positions():
    torch.manual_seed(0)
    vectors, values = draw(SENTENCES, WIDTH), draw(SENTENCES, POSITIONS, WIDTH)
    torch.testing.assert_close(
        by_position(vectors, values), torch.einsum("bg,bsg->bs", vectors, values)
    )
