"""Additive attention against the NumPy loops.

Legend: B sentences, S source positions, A attention, C values.
"""

import numpy as np
import pytest
import torch
from common.float16 import FLOAT16

from fairseq_ext.common.attention import additive_attention
from reference import multiway


@pytest.fixture
def rng():
    return np.random.default_rng(17)


def tensor(array):
    return torch.from_numpy(np.asarray(array))


class AttentionCase:
    """Annotations of ragged sentences, rubbish behind each, with the reference's shared arrays."""

    def __init__(self, rng, lengths, beams=1):
        shape = multiway.Shape(4, 5, 3, 2, 2, 2)
        self.shared = multiway.random_shared(shape, rng)
        self.annotations = [rng.normal(size=(length, 4)) for length in lengths]
        self.queries = rng.normal(size=(len(lengths) * beams, 5))
        self.values = torch.full((len(lengths), max(lengths), 4), 7.0, dtype=torch.float64)
        self.padding = torch.ones(self.values.shape[:2], dtype=torch.bool)
        for number, states in enumerate(self.annotations):
            self.values[number, : len(states)] = tensor(states)
            self.padding[number, : len(states)] = False
        weight, bias = (self.shared[f"attention.encoder.{n}"] for n in ("weight", "bias"))
        self.keys = (self.values @ tensor(weight).t() + tensor(bias)).tanh()
        self.energy = tensor(self.shared["attention.score"])
        self.decoder_weight = tensor(self.shared["attention.decoder.weight"])


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("lengths", [[1], [4], [3, 1, 5]], ids=str)
def test_additive_attention(rng, lengths, beams):
    case = AttentionCase(rng, lengths, beams)
    query = tensor(case.queries) @ case.decoder_weight.t()
    context, weights = additive_attention(query, case.keys, case.values, case.energy, case.padding)
    for row, query_state in enumerate(case.queries):
        annotations = case.annotations[row // beams]
        expected = multiway.attention_weights(annotations, query_state, case.shared)
        np.testing.assert_allclose(weights[row, : len(annotations)], expected, atol=1e-12)
        assert not weights[row, len(annotations) :].any()
        np.testing.assert_allclose(context[row], expected @ annotations, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.bfloat16, pytest.param(torch.float16, marks=FLOAT16)])
def test_softmax_of_half_precision_is_single(dtype, monkeypatch):
    """exp and sum in float32, whatever the scores are; the weights return to their precision."""
    asked, real = [], torch.Tensor.softmax

    def spy(self, dim, dtype=None):
        asked.append(dtype)
        return real(self, dim=dim, dtype=dtype)

    monkeypatch.setattr(torch.Tensor, "softmax", spy)
    query, keys = torch.randn(2, 3, dtype=dtype), torch.randn(2, 4, 3, dtype=dtype)
    padding = torch.zeros(2, 4, dtype=torch.bool)
    context, weights = additive_attention(query, keys, keys, torch.ones(3, dtype=dtype), padding)
    assert asked == [torch.float32]
    assert weights.dtype == context.dtype == dtype
    asked.clear()
    double = [tensor.double() for tensor in (query, keys, keys, torch.ones(3))]
    additive_attention(*double, padding)
    assert asked == [torch.float64]
