"""Gradients of additive attention, step by step, against autograd.

Dimensions: B sentences, S source positions, T steps, A attention.
"""

import torch

from fairseq_ext.common.attention_gradient import AdditiveAttention, by_position

SENTENCES, POSITIONS, STEPS, WIDTH = 3, 5, 4, 6


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def test_weights_are_those_of_the_equation():
    """softmax over energy . tanh(keys_i + query), without the masked positions."""
    torch.manual_seed(0)
    keys, energy, query = draw(SENTENCES, POSITIONS, WIDTH), draw(WIDTH), draw(SENTENCES, WIDTH)
    masked = torch.arange(POSITIONS) >= torch.tensor([[POSITIONS], [2], [1]])
    scores = torch.tanh(keys + query.unsqueeze(1)) @ energy
    expected = scores.masked_fill(masked, float("-inf")).softmax(dim=1)
    weights = torch.empty_like(expected)
    AdditiveAttention(keys, energy).weigh(query, masked, weights)
    torch.testing.assert_close(weights, expected)


def test_gradients_over_several_steps_are_those_of_autograd():
    torch.manual_seed(0)
    keys = draw(SENTENCES, POSITIONS, WIDTH).requires_grad_()
    energy, queries = draw(WIDTH).requires_grad_(), draw(STEPS, SENTENCES, WIDTH).requires_grad_()
    upstream = draw(STEPS, SENTENCES, POSITIONS)
    scores = torch.tanh(keys + queries.unsqueeze(2)) @ energy  # (T, B, S)
    weights = scores.softmax(dim=2)
    expected = torch.autograd.grad((weights * upstream).sum(), [keys, energy, queries])
    attention = AdditiveAttention(keys.detach(), energy.detach())
    attention.start_backward()
    grad_queries = torch.empty_like(queries)
    for step in reversed(range(STEPS)):
        grad_queries[step] = attention.backward(
            queries[step].detach(), weights[step].detach(), upstream[step]
        )
    for ours, autograd in zip((*attention.gradients(), grad_queries), expected):
        torch.testing.assert_close(ours, autograd)


def test_products_with_all_positions():
    torch.manual_seed(0)
    vectors, values = draw(SENTENCES, WIDTH), draw(SENTENCES, POSITIONS, WIDTH)
    torch.testing.assert_close(
        by_position(vectors, values), torch.einsum("bg,bsg->bs", vectors, values)
    )
