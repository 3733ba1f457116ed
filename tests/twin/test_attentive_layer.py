"""The attentive layer step by step: where its attention begins, what beams share, what it hides."""

import pytest
import torch

from fairseq_ext.twin.attentive.layer import AttentiveLSTM, padding_at_every_step

EMBED, CONTEXT, HIDDEN, ATTENTION = 3, 5, 4, 6
SENTENCES, POSITIONS = 2, 4


@pytest.fixture(params=[0, 1], ids=["attend-first", "attend-after"])
def layer(request):
    torch.manual_seed(1)
    sizes = EMBED, CONTEXT, HIDDEN, ATTENTION
    return AttentiveLSTM(*sizes, first=request.param, location=(2, 3)).double()


@pytest.fixture
def source(layer):
    annotations = torch.randn(SENTENCES, POSITIONS, CONTEXT, dtype=torch.double)
    padding = torch.tensor([[False] * 4, [False, False, True, True]])
    return layer.source(annotations, padding)


def start(layer, source, rows):
    zeros = torch.zeros(rows, HIDDEN, dtype=torch.double)
    return layer.start(zeros, zeros, source)


def test_the_first_step_has_looked_or_not(layer, source):
    """With first = 0 h_1 reads a context, with first = 1 a zero one."""
    before = start(layer, source, SENTENCES)
    assert before.weights.tolist() == [[1, 0, 0, 0]] * 2 and not before.context.any()
    inputs = torch.randn(SENTENCES, EMBED, dtype=torch.double)
    after = layer.step(inputs, before, source)
    other = layer.step(inputs, before, source._replace(values=2 * source.values))
    assert torch.equal(after.state, other.state) is (layer.first == 1)
    torch.testing.assert_close(other.context, 2 * after.context)


def test_attention_is_a_distribution_over_real_positions(layer, source):
    inputs = torch.randn(SENTENCES, EMBED, dtype=torch.double)
    weights = layer.step(inputs, start(layer, source, SENTENCES), source).weights
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(SENTENCES, dtype=torch.double))
    assert not weights[source.padding].any() and weights[~source.padding].all()


def test_what_is_masked_is_not_looked_at(layer, source):
    masked = torch.tensor([[True, True, True, False], [True, False, True, True]])
    inputs = torch.randn(SENTENCES, EMBED, dtype=torch.double)
    after = layer.step(inputs, start(layer, source, SENTENCES), source, masked)
    assert torch.equal(after.weights, (~masked).double())
    torch.testing.assert_close(after.context, source.values[~masked])


def test_beams_are_rows_of_their_own(layer, source):
    """Three hypotheses of a sentence, together and one by one."""
    inputs = torch.randn(3 * SENTENCES, EMBED, dtype=torch.double)
    together = layer.step(inputs, start(layer, source, 3 * SENTENCES), source)
    for beam in range(3):
        alone = layer.step(inputs[beam::3], start(layer, source, SENTENCES), source)
        for rows, values in zip(together, alone):
            torch.testing.assert_close(rows[beam::3], values)


def test_every_step_may_look_everywhere_but_at_padding(source):
    masked = padding_at_every_step(source.padding, 3)
    assert masked.shape == (3, SENTENCES, POSITIONS)
    assert all(torch.equal(step, source.padding) for step in masked)


def test_the_forget_gate_starts_open(layer):
    biases = layer.gates_input.bias.view(4, HIDDEN)
    assert biases[1].eq(1).all() and biases[[0, 2, 3]].eq(0).all()
