"""Gated recurrent units against the NumPy loops, in value and gradient.

Legend: B sentences, S source positions, T steps, I inputs, H units.
"""

import numpy as np
import pytest
import torch

from fairseq_ext.common import recurrent
from reference import gradient
from reference import recurrent as reference

# (I, H, lengths of the sentences)
CASES = [(3, 4, [1]), (1, 1, [4]), (5, 2, [3, 1, 5]), (2, 3, [2, 2])]
NAMES = {
    "input.weight": "weight_ih_l0",
    "input.bias": "bias_ih_l0",
    "recurrent.weight": "weight_hh_l0",
}


@pytest.fixture
def rng():
    return np.random.default_rng(17)


@pytest.fixture(params=CASES, ids=str)
def case(request):
    return request.param


def tensor(array):
    return torch.from_numpy(np.asarray(array))


@torch.no_grad()
def filled(gru, params, name):
    """``gru`` in float64 with the reference's arrays."""
    gru.double()
    for ours, theirs in NAMES.items():
        getattr(gru, theirs).copy_(tensor(params[f"{name}.{ours}"]))
    return gru


def padded(sentences):
    """Arrays (length, I) -> (B, S, I), rubbish behind each sentence, and padding (B, S)."""
    longest = max(len(sentence) for sentence in sentences)
    rows = torch.full((len(sentences), longest, sentences[0].shape[1]), 7.0, dtype=torch.float64)
    padding = torch.ones(len(sentences), longest, dtype=torch.bool)
    for number, sentence in enumerate(sentences):
        rows[number, : len(sentence)] = tensor(sentence)
        padding[number, : len(sentence)] = False
    return rows, padding


def bidirectional(rng, inputs, hidden):
    params, module = {}, recurrent.BidirectionalGRU(inputs, hidden)
    for side, gru in (("forward", module.forwards), ("backward", module.backwards)):
        reference.random_gru(inputs, hidden, rng, params, "g." + side)
        filled(gru, params, "g." + side)
    return params, module


def test_cell(rng, case):
    inputs, hidden, lengths = case
    params = {}
    reference.random_gru(inputs, hidden, rng, params, "g")
    x, h = rng.normal(size=(len(lengths), inputs)), rng.normal(size=(len(lengths), hidden))
    gates_x = x @ params["g.input.weight"].T + params["g.input.bias"]
    gates_h = h @ params["g.recurrent.weight"].T
    ours = recurrent.gru_cell(tensor(gates_x), tensor(gates_h), tensor(h))
    expected = [reference.gru_cell(vector, state, params, "g") for vector, state in zip(x, h)]
    np.testing.assert_allclose(ours.numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("path", ["forward", "literal"])
def test_sequence(rng, case, path):
    inputs, hidden, lengths = case
    params = {}
    reference.random_gru(inputs, hidden, rng, params, "g")
    gru = filled(recurrent.GRU(inputs, hidden), params, "g")
    x = rng.normal(size=(len(lengths), max(lengths), inputs))
    with torch.no_grad():
        ours = getattr(gru, path)(tensor(x))
    expected = [reference.gru(row, np.zeros(hidden), params, "g") for row in x]
    np.testing.assert_allclose(ours.numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("literal", [False, True], ids=["torch", "literal"])
def test_bidirectional_of_ragged_sentences(rng, case, literal):
    """Value, and the gradient of a random weighting of the states, padding filled with rubbish."""
    inputs, hidden, lengths = case
    params, module = bidirectional(rng, inputs, hidden)
    sentences = [rng.normal(size=(length, inputs)) for length in lengths]
    cares = [rng.normal(size=(length, 2 * hidden)) for length in lengths]

    def loss():
        both = [reference.bidirectional_gru(sentence, params, "g") for sentence in sentences]
        return sum((care * states).sum() for care, states in zip(cares, both))

    rows, padding = padded(sentences)
    rows.requires_grad_()
    states = module(rows, padding, literal=literal)
    for number, sentence in enumerate(sentences):
        expected = reference.bidirectional_gru(sentence, params, "g")
        ours = states[number, : len(sentence)].detach().numpy()
        np.testing.assert_allclose(ours, expected, atol=1e-12)
    sum((tensor(care) * states[n, : len(care)]).sum() for n, care in enumerate(cares)).backward()
    for side, gru in (("forward", module.forwards), ("backward", module.backwards)):
        for ours, theirs in NAMES.items():
            array, grad = params[f"g.{side}.{ours}"], getattr(gru, theirs).grad
            for index in gradient.random_entries(array, 3, rng):
                expected = gradient.central_difference(loss, array, index)
                assert grad[index].item() == pytest.approx(expected, rel=1e-6, abs=1e-8), ours
    for number, sentence in enumerate(sentences):
        for index in gradient.random_entries(sentence, 2, rng):
            expected = gradient.central_difference(loss, sentence, index)
            assert rows.grad[number][index].item() == pytest.approx(expected, rel=1e-6, abs=1e-8)
    assert not rows.grad[padding].any()


def test_torch_is_literal(rng):
    """Equal to 1e-6 in float64 and to 1e-5 in float32, in value and gradient."""
    for dtype, tolerance in ((torch.float64, 1e-6), (torch.float32, 1e-5)):
        _, module = bidirectional(rng, 6, 5)
        rows, padding = padded([rng.normal(size=(length, 6)) for length in (7, 1, 4)])
        module, rows = module.to(dtype), rows.to(dtype)
        outcomes = []
        for literal in (False, True):
            module.zero_grad()
            states = module(rows, padding, literal=literal)[~padding]
            states.pow(2).sum().backward()
            grads = [p.grad.clone() for p in module.parameters() if p.requires_grad]
            outcomes.append([states.detach(), *grads])
        for fused, other in zip(*outcomes):
            assert (fused - other).abs().max() <= tolerance * other.abs().max()


def test_recurrent_bias_is_zero_and_stays_so():
    gru = recurrent.GRU(3, 4)
    assert not gru.bias_hh_l0.any() and not gru.bias_hh_l0.requires_grad
    gru(torch.randn(2, 3, 3)).sum().backward()
    assert gru.bias_hh_l0.grad is None
    trained = {name for name, parameter in gru.named_parameters() if parameter.requires_grad}
    assert trained == set(NAMES.values())


def test_initial_weights():
    """Each gate's recurrent matrix is orthogonal, biases are zero."""
    gru = recurrent.GRU(3, 4)
    for part in gru.weight_hh_l0.chunk(3):
        torch.testing.assert_close(part @ part.t(), torch.eye(4), atol=1e-5, rtol=0)
    assert not gru.bias_ih_l0.any()
