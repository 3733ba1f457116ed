"""Gated recurrent units and additive attention against the NumPy loops, in value and gradient.

Legend: B sentences, S source positions, T steps, I inputs, H units, A attention, C values.
"""

import numpy as np
import pytest
import torch

from fairseq_ext.common import recurrent
from fairseq_ext.common.attention import additive_attention
from fairseq_ext.common.attentive_gru import attentive_gru
from reference import gradient, multiway
from reference import recurrent as reference

PAD = 1
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
    expected = [reference.gru_cell(one, state, params, "g") for one, state in zip(x, h)]
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
        found = []
        for literal in (False, True):
            module.zero_grad()
            states = module(rows, padding, literal=literal)[~padding]
            states.pow(2).sum().backward()
            grads = [p.grad.clone() for p in module.parameters() if p.requires_grad]
            found.append([states.detach(), *grads])
        for one, other in zip(*found):
            assert (one - other).abs().max() <= tolerance * other.abs().max()


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


def test_reversal_stays_within_each_sentence():
    padding = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 0], [0, 1, 1, 1, 1]]).bool()
    positions = recurrent.reversal(padding)
    assert positions[0, :3].tolist() == [2, 1, 0]
    assert positions[1].tolist() == [4, 3, 2, 1, 0]
    assert positions[2, 0] == 0
    for row, hidden in zip(positions, padding):
        assert sorted(row.tolist()) == list(range(5))
        assert hidden[row][hidden].all()
    rows = torch.randn(3, 5, 2)
    twice = recurrent.reorder(recurrent.reorder(rows, positions), positions)
    assert torch.equal(twice, rows)


def test_reorder_is_a_gather_along_positions():
    rows, positions = torch.randn(2, 3, 4), torch.tensor([[2, 0, 0], [1, 1, 2]])
    expected = torch.stack([rows[0, [2, 0, 0]], rows[1, [1, 1, 2]]])
    assert torch.equal(recurrent.reorder(rows, positions), expected)


def test_alignment_moves_padding_to_the_end():
    tokens = torch.tensor([[1, 1, 5, 6], [4, 5, 6, 7], [5, 6, 1, 1], [1, 1, 1, 9]])
    aligned = recurrent.align_left(tokens, PAD)
    assert aligned.tolist() == [[5, 6, 1, 1], [4, 5, 6, 7], [5, 6, 1, 1], [9, 1, 1, 1]]
    assert torch.equal(recurrent.align_left(aligned, PAD), aligned)


@pytest.mark.parametrize("dim", [1, 2])
def test_what_was_aligned_is_put_back(dim):
    """Values along dimension 1 or 2, one number for each token."""
    tokens = torch.tensor([[1, 1, 5, 6], [4, 5, 6, 7], [5, 6, 1, 1], [1, 1, 1, 9]])
    leading = recurrent.leading_padding(tokens, PAD)
    assert leading.tolist() == [[2], [0], [0], [3]]
    values = torch.stack([tokens, 10 * tokens], dim=3 - dim)
    aligned = recurrent.align_left(tokens, PAD)
    moved = torch.stack([aligned, 10 * aligned], dim=3 - dim)
    assert torch.equal(recurrent.put_back(moved, leading, dim), values)


class AttentionCase:
    """Annotations of ragged sentences with the reference's shared arrays, several rows of each."""

    def __init__(self, rng, lengths, beams=1):
        shape = multiway.Shape(4, 5, 3, 2, 2, 2)
        self.shared = multiway.random_shared(shape, rng)
        self.annotations = [rng.normal(size=(length, 4)) for length in lengths]
        self.queries = rng.normal(size=(len(lengths) * beams, 5))
        self.values, self.padding = padded(self.annotations)
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
    for row, wanted in enumerate(case.queries):
        annotations = case.annotations[row // beams]
        expected = multiway.attention_weights(annotations, wanted, case.shared)
        np.testing.assert_allclose(weights[row, : len(annotations)], expected, atol=1e-12)
        assert not weights[row, len(annotations) :].any()
        np.testing.assert_allclose(context[row], expected @ annotations, atol=1e-12)


def step_by_step(
    state, query_inputs, gate_inputs, keys, gate_values, padding, state_weight, query_weight, energy
):
    """What ``attentive_gru`` says it computes, written with its parts and differentiated by torch.

    The additive attention and the cell are themselves tested against loops above.
    """
    width = query_inputs.size(2)
    query_part, gates_part = state_weight[:width], state_weight[width:]
    states, all_weights = [], []
    for query_input, gate_input in zip(query_inputs, gate_inputs):
        wanted = torch.tanh(query_input + state @ query_part.t())
        read, weights = additive_attention(
            wanted @ query_weight.t(), keys, gate_values, energy, padding
        )
        state = recurrent.gru_cell(gate_input + read, state @ gates_part.t(), state)
        states.append(state)
        all_weights.append(weights)
    return torch.stack(states), torch.stack(all_weights)


def attentive_arguments(lengths, steps, units, width, dtype=torch.float64, scale=1.0):
    generator = torch.Generator().manual_seed(steps)
    sentences, longest = len(lengths), max(lengths)

    def draw(*size):
        numbers = scale * torch.randn(*size, generator=generator, dtype=torch.float64)
        return numbers.to(dtype).requires_grad_()

    padding = torch.arange(longest).unsqueeze(0) >= torch.tensor(lengths).unsqueeze(1)
    return [
        draw(sentences, units),
        draw(steps, sentences, width),
        draw(steps, sentences, 3 * units),
        draw(sentences, longest, width),
        draw(sentences, longest, 3 * units),
        padding,
        draw(width + 3 * units, units),
        draw(width, width),
        draw(width),
    ]


SHAPES = [([1], 1, 1, 1), ([1], 3, 2, 3), ([4], 1, 3, 2), ([3, 1, 4], 5, 2, 3), ([2, 2], 2, 4, 1)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradient_of_the_fused_loop(shape):
    """Central differences of both outputs for every entry of every argument."""
    assert torch.autograd.gradcheck(attentive_gru, attentive_arguments(*shape))


@pytest.mark.parametrize(
    "dtype, tolerance", [(torch.float64, 1e-6), (torch.float32, 1e-5)], ids=["double", "single"]
)
@pytest.mark.parametrize("shape", [*SHAPES, ([9, 6, 2, 9], 12, 16, 24)], ids=str)
def test_fused_loop_is_step_by_step(shape, dtype, tolerance):
    arguments = attentive_arguments(*shape, dtype=dtype, scale=0.5)
    leaves = [argument for argument in arguments if argument.requires_grad]
    found = []
    for function in (attentive_gru, step_by_step):
        states, weights = function(*arguments)
        loss = (states * states).sum() + (weights * weights).sum()
        found.append([states, weights, *torch.autograd.grad(loss, leaves)])
    for one, other in zip(*found):
        assert (one - other).abs().max() <= tolerance * max(1.0, other.abs().max())


@pytest.mark.parametrize("output", [0, 1], ids=["states", "weights"])
def test_gradient_of_one_output_alone(output):
    arguments = attentive_arguments([3, 1], 2, 2, 3)
    leaves = [argument for argument in arguments if argument.requires_grad]
    found = []
    for function in (attentive_gru, step_by_step):
        loss = function(*arguments)[output].pow(2).sum()
        found.append(torch.autograd.grad(loss, leaves, allow_unused=True))
    for one, other in zip(*found):
        torch.testing.assert_close(one, torch.zeros_like(one) if other is None else other)


def test_padding_gets_no_gradient_and_is_not_read():
    arguments = attentive_arguments([3, 2], 4, 2, 3)
    padding = arguments[5]
    states, weights = attentive_gru(*arguments)
    states.pow(2).sum().backward()
    keys, gate_values = arguments[3], arguments[4]
    for rows in (keys, gate_values):
        assert not rows.grad[padding].any()
        assert (rows.grad[~padding].abs().amax(dim=-1) > 1e-9).all()
    with torch.no_grad():
        keys[padding], gate_values[padding] = 50.0, 50.0
        again, _ = attentive_gru(*arguments)
    assert torch.equal(again, states)
    assert not weights[:, padding].any()


def test_saved_numbers_survive_a_change_of_the_output():
    """The caller may write into the states (dropout in place) before the backward pass."""
    arguments = attentive_arguments([3, 1], 3, 2, 3)
    leaves = [argument for argument in arguments if argument.requires_grad]
    grads = []
    for write in (False, True):
        states, _ = attentive_gru(*arguments)
        states = states.mul_(2.0) if write else states * 2.0
        grads.append(torch.autograd.grad(states.sum(), leaves))
    for one, other in zip(*grads):
        torch.testing.assert_close(one, other)
