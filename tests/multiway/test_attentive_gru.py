"""The fused loop against its steps, in value and gradient; alone, then inside whole modules.

Legend: B sentences, S source positions, T target positions.
"""

import pytest
import torch
from toy_sentences import PAD, previous, rows

from fairseq_ext.common import recurrent
from fairseq_ext.common.attention import additive_attention
from fairseq_ext.multiway.attentive_gru import attentive_gru
from fairseq_ext.multiway.modules import (
    MultiwayDecoder,
    MultiwayEncoder,
    MultiwaySize,
    SharedAttention,
    decode,
)
from properties import check_same_numbers, random_sentences


def step_by_step(
    state, query_inputs, gate_inputs, keys, gate_values, padding, state_weight, query_weight, energy
):
    """What ``attentive_gru`` says it computes, written with its parts and differentiated by torch.

    The attention and the cell are tested against loops in test_attention.py and test_recurrent.py.
    """
    width = query_inputs.size(2)
    query_part, gates_part = state_weight[:width], state_weight[width:]
    states, all_weights = [], []
    for query_input, gate_input in zip(query_inputs, gate_inputs):
        query = torch.tanh(query_input + state @ query_part.t())
        read, weights = additive_attention(
            query @ query_weight.t(), keys, gate_values, energy, padding
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
    outcomes = []
    for function in (attentive_gru, step_by_step):
        states, weights = function(*arguments)
        loss = (states * states).sum() + (weights * weights).sum()
        outcomes.append([states, weights, *torch.autograd.grad(loss, leaves)])
    for fused, stepwise in zip(*outcomes):
        assert (fused - stepwise).abs().max() <= tolerance * max(1.0, stepwise.abs().max())


def test_gradients_inside_of_autocast_are_not_rounded():
    """Of a loop that ran without it, as of everything else behind ``without_autocast``."""
    arguments = attentive_arguments([9, 6, 2, 9], 12, 16, 24, torch.float32, 0.5)
    leaves = [argument for argument in arguments if argument.requires_grad]
    states, weights = attentive_gru(*arguments)
    loss = (states * states).sum() + (weights * weights).sum()
    outside = torch.autograd.grad(loss, leaves, retain_graph=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = torch.autograd.grad(loss, leaves)
    assert all(torch.equal(*gradients) for gradients in zip(outside, inside))


@pytest.mark.parametrize("output", [0, 1], ids=["states", "weights"])
def test_gradient_of_one_output_alone(output):
    arguments = attentive_arguments([3, 1], 2, 2, 3)
    leaves = [argument for argument in arguments if argument.requires_grad]
    gradients = []
    for function in (attentive_gru, step_by_step):
        loss = function(*arguments)[output].pow(2).sum()
        gradients.append(torch.autograd.grad(loss, leaves, allow_unused=True))
    for fused, stepwise in zip(*gradients):
        torch.testing.assert_close(fused, torch.zeros_like(fused) if stepwise is None else stepwise)


def test_padding_gets_no_gradient_and_is_not_read():
    arguments = attentive_arguments([3, 2], 4, 2, 3)
    padding = arguments[5]
    states, weights = attentive_gru(*arguments)
    states.pow(2).sum().backward()
    keys, gate_values = arguments[3], arguments[4]
    for values in (keys, gate_values):
        assert not values.grad[padding].any()
        assert (values.grad[~padding].abs().amax(dim=-1) > 1e-9).all()
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
    for scaled, overwritten in zip(*grads):
        torch.testing.assert_close(scaled, overwritten)


# ---------------------------------------------------------------- inside whole modules

WORDS = 23
SIZE = MultiwaySize(
    embed_dim=12,
    hidden_size=20,
    context_size=24,
    readout_size=16,
    init_hidden_size=10,
    init_size=14,
)
BATCHES = [([1], [1]), ([6], [1]), ([1], [7]), ([8, 3, 1, 8], [5, 9, 2, 1])]
# in single precision the numbers inside the attention are rounded at 6e-8, gradients here are small
PRECISIONS = [(torch.float64, 1e-6), (torch.float32, 3e-5)]


@pytest.fixture(params=BATCHES, ids=str)
def lengths(request):
    return request.param


@pytest.fixture(params=PRECISIONS, ids=["double", "single"])
def precision(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["right-padded", "left-padded"])
def left(request):
    return request.param


class Batch:
    """Modules with random weights and a batch of sentences; everything that has a gradient."""

    def __init__(self, lengths, dtype, left=True):
        torch.manual_seed(0)
        self.encoder = MultiwayEncoder(SIZE, 11, WORDS, PAD)
        self.shared, self.decoder = SharedAttention(SIZE), MultiwayDecoder(SIZE, WORDS, PAD)
        self.modules = torch.nn.ModuleList([self.encoder, self.shared, self.decoder]).to(dtype)
        # biases that are not zero, and an attention that is far from the mean of the source, whose
        # gradient would be the small difference of large numbers
        for name, parameter in self.modules.named_parameters():
            if "bias" in name and parameter.requires_grad:
                torch.nn.init.normal_(parameter, std=0.3)
            if "energy" in name or "embedding.weight" in name:
                torch.nn.init.normal_(parameter)
        sources = random_sentences(lengths[0], WORDS, 2, seed=1)
        self.targets = [t.tolist() for t in random_sentences(lengths[1], WORDS, 2, seed=2)]
        self.source = rows([sentence.tolist() for sentence in sources], left)
        self.prev, self.target = previous(self.targets), rows(self.targets)

    def outcome(self, literal_encoder, literal_decoder):
        """Logits of real positions (N, V), attention, and gradients by name."""
        self.modules.zero_grad()
        encoded = [self.encoder.encode(self.source, literal=literal_encoder)]
        readout, [weights] = decode(
            self.decoder, self.shared, encoded, self.prev, literal=literal_decoder
        )
        real = self.target.ne(PAD)
        logits = self.decoder.logits(readout)[real]  # (N, V)
        loss = torch.nn.functional.cross_entropy(logits, self.target[real], reduction="sum")
        loss.backward()
        named = self.modules.named_parameters()
        grads = {name: p.grad.clone() for name, p in named if p.requires_grad}
        return {"loss": loss, "logits": logits, "weights": weights[real], **grads}


@pytest.mark.parametrize("literal_encoder", [False, True], ids=["torch-encoder", "literal-encoder"])
@pytest.mark.parametrize("literal_decoder", [False, True], ids=["fused", "literal-decoder"])
def test_paths_agree(lengths, precision, left, literal_encoder, literal_decoder):
    dtype, tolerance = precision
    batch = Batch(lengths, dtype, left)
    expected = batch.outcome(True, True)
    check_same_numbers(batch.outcome(literal_encoder, literal_decoder), expected, tolerance)


def test_every_trained_parameter_has_a_gradient(left):
    batch = Batch(([5, 3], [4, 2]), torch.float64, left)
    for name, grad in batch.outcome(False, False).items():
        assert grad.abs().max() > 1e-9, name


def test_no_gradient_reaches_padding(left):
    """Neither the padding symbol's embeddings nor the annotations at padded positions."""
    batch = Batch(([5, 2, 1], [2, 4, 3]), torch.float64, left)
    annotations, padding = batch.encoder.encode(batch.source)
    annotations.retain_grad()
    readout, _ = decode(batch.decoder, batch.shared, [(annotations, padding)], batch.prev)
    batch.decoder.logits(readout)[batch.target.ne(PAD)].pow(2).sum().backward()
    assert not annotations.grad[padding].any()
    assert (annotations.grad[~padding].abs().amax(dim=-1) > 1e-9).all()
    for module in (batch.encoder, batch.decoder):
        assert not module.embedding.weight.grad[PAD].any()
        assert module.embedding.weight.grad.any()


def test_padding_may_hold_anything(left):
    """The embeddings of the padding symbol, zero or not, reach no real position."""
    batch = Batch(([5, 2, 1], [2, 4, 3]), torch.float64, left)
    before = batch.outcome(False, False)
    with torch.no_grad():
        batch.encoder.embedding.weight[PAD] = 1e3
        batch.decoder.embedding.weight[PAD] = 1e3
    check_same_numbers(batch.outcome(False, False), before, 1e-12)


def test_frozen_parts_get_no_gradient_and_do_not_stop_the_others():
    """What --train-only leaves out: no gradient there, the same elsewhere."""
    batch = Batch(([5, 2], [4, 3]), torch.float64)
    whole = batch.outcome(False, False)
    frozen = [batch.encoder, batch.decoder.query_state, batch.decoder.gates_state]
    for module in frozen:
        module.requires_grad_(False)
    part = batch.outcome(False, False)
    for name, parameter in batch.modules.named_parameters():
        assert (name in part) == parameter.requires_grad
    assert 10 < len(part) < len(whole)
    check_same_numbers(part, {name: whole[name] for name in part}, 1e-12)


def test_forward_alone_needs_no_gradient():
    batch = Batch(([5, 2], [4, 3]), torch.float32)
    with torch.no_grad():
        encoded = [batch.encoder.encode(batch.source)]
        readout, _ = decode(batch.decoder, batch.shared, encoded, batch.prev)
    assert not readout.requires_grad


def test_half_precision_by_autocast():
    """What --amp does: bfloat16 products around the loop change every number by a few per cent."""
    batch = Batch(([8, 3, 1, 8], [5, 9, 2, 1]), torch.float32)
    expected = batch.outcome(False, False)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        in_bfloat16 = batch.outcome(False, False)
    assert in_bfloat16["loss"].item() == pytest.approx(expected["loss"].item(), rel=0.01)
    assert in_bfloat16["logits"].dtype == torch.bfloat16
    for name, tensor in expected.items():
        assert (in_bfloat16[name] - tensor).norm() < 0.1 * tensor.norm(), name
