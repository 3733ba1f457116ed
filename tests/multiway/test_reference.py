"""The NumPy references against torch's own GRU and against each other: a check of the checkers."""

import numpy as np
import pytest
import torch

from reference import gradient, multiway, recurrent

END, WORDS = 2, 8
SHAPE = multiway.Shape(
    annotation=4, attention=5, context=3, init_hidden=2, init_output=4, readout=6
)
SOURCES, TARGET = [[5, 7, 4, END], [6, END]], [4, 6, 5, END]


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture
def model(rng):
    """Two encoders of different sizes, the shared part and a decoder with deep fusion's part."""
    encoders = [multiway.random_encoder(WORDS, 3 + n, 2 + n, SHAPE, rng) for n in range(2)]
    decoder = multiway.random_decoder(WORDS, 5, 4, SHAPE, rng)
    decoder.update(multiway.random_fusion(3, SHAPE, rng))
    return encoders, multiway.random_shared(SHAPE, rng), decoder


def torch_gru(params, names, inputs, hidden):
    """torch's GRU with the arrays of one or two directions; its recurrent bias is zero."""
    rnn = torch.nn.GRU(inputs, hidden, bidirectional=len(names) == 2, batch_first=True).double()
    with torch.no_grad():
        for name, suffix in zip(names, ("", "_reverse")):
            for ours, theirs in (
                ("input.weight", "weight_ih_l0"),
                ("input.bias", "bias_ih_l0"),
                ("recurrent.weight", "weight_hh_l0"),
            ):
                array = torch.from_numpy(params[f"{name}.{ours}"])
                getattr(rnn, theirs + suffix).copy_(array)
            getattr(rnn, "bias_hh_l0" + suffix).zero_()
    return rnn


@pytest.mark.parametrize("inputs, hidden, length", [(3, 4, 5), (1, 2, 1), (5, 1, 3)])
def test_gru_is_that_of_torch(rng, inputs, hidden, length):
    params = {}
    recurrent.random_gru(inputs, hidden, rng, params, "gru")
    x, initial = rng.normal(size=(length, inputs)), rng.normal(size=hidden)
    with torch.no_grad():
        theirs, _ = torch_gru(params, ["gru"], inputs, hidden)(
            torch.from_numpy(x)[None], torch.from_numpy(initial)[None, None]
        )
    ours = recurrent.gru(x, initial, params, "gru")
    np.testing.assert_allclose(ours, theirs[0].numpy(), atol=1e-12)


def test_bidirectional_gru_is_that_of_torch(rng):
    params = {}
    for side in ("forward", "backward"):
        recurrent.random_gru(3, 2, rng, params, "g." + side)
    x = rng.normal(size=(4, 3))
    with torch.no_grad():
        theirs, _ = torch_gru(params, ["g.forward", "g.backward"], 3, 2)(torch.from_numpy(x)[None])
    ours = recurrent.bidirectional_gru(x, params, "g")
    np.testing.assert_allclose(ours, theirs[0].numpy(), atol=1e-12)


def test_open_and_closed_update_gate(rng):
    """u = 1 keeps the state, u = 0 takes the candidate alone; r = 0 forgets the state in it."""
    params = {}
    recurrent.random_gru(2, 3, rng, params, "gru")
    x, h = rng.normal(size=2), rng.normal(size=3)
    bias = params["gru.input.bias"]
    bias[3:6] = 1000
    np.testing.assert_array_equal(recurrent.gru_cell(x, h, params, "gru"), h)
    bias[:6] = -1000
    candidate = np.tanh(params["gru.input.weight"][6:] @ x + bias[6:])
    np.testing.assert_allclose(recurrent.gru_cell(x, h, params, "gru"), candidate, atol=1e-12)


def test_attention_over_one_word_is_that_word(rng, model):
    encoders, shared, _ = model
    annotations = multiway.encode([END], encoders[0])
    weights = multiway.attention_weights(annotations, rng.normal(size=5), shared)
    assert weights.tolist() == [1.0]
    expected = shared["context.weight"] @ annotations[0] + shared["context.bias"]
    np.testing.assert_allclose(multiway.context(annotations, weights, shared), expected)


def test_attention_does_not_know_the_order_of_the_annotations(rng, model):
    encoders, shared, _ = model
    annotations, query = multiway.encode(SOURCES[0], encoders[0]), rng.normal(size=5)
    weights = multiway.attention_weights(annotations, query, shared)
    turned = multiway.attention_weights(annotations[::-1], query, shared)
    np.testing.assert_allclose(turned[::-1], weights)
    assert np.ptp(weights) > 1e-3


def test_initial_state_reads_the_whole_sentence(model):
    """h_1 holds the backward state that has read everything."""
    encoders, shared, decoder = model
    states = []
    for last in (4, 5):
        annotations = multiway.encode([6, 7, last], encoders[0])
        states.append(multiway.initial_state(annotations, shared, decoder))
    assert np.abs(states[0] - states[1]).max() > 1e-4


def test_first_token_sees_no_embedding(model):
    encoders, shared, decoder = model
    before = multiway.translate(SOURCES[0], TARGET, encoders[0], shared, decoder)
    decoder["embedding"] = decoder["embedding"] + 1
    after = multiway.translate(SOURCES[0], TARGET, encoders[0], shared, decoder)
    np.testing.assert_array_equal(after[0], before[0])
    assert (np.abs(after[1:] - before[1:]).max(axis=1) > 1e-3).all()


def test_scores_do_not_depend_on_later_tokens(model):
    encoders, shared, decoder = model
    first = multiway.translate(SOURCES[0], [4, 5, 6], encoders[0], shared, decoder)
    second = multiway.translate(SOURCES[0], [4, 7, 3], encoders[0], shared, decoder)
    np.testing.assert_array_equal(first[:2], second[:2])
    assert np.abs(first[2] - second[2]).max() > 1e-3


def test_averages_of_the_same_source_are_that_source(model):
    encoders, shared, decoder = model
    single = multiway.translate(SOURCES[0], TARGET, encoders[0], shared, decoder)
    twice = [SOURCES[0]] * 2, TARGET, [encoders[0]] * 2, shared, decoder
    np.testing.assert_allclose(multiway.early_average(*twice), single, atol=1e-12)
    late = multiway.late_average(*twice)
    expected = [multiway.log_softmax(scores) for scores in single]
    np.testing.assert_allclose(late, expected, atol=1e-12)


def test_averages_of_two_sources_differ_from_each_and_from_each_other(model):
    encoders, shared, decoder = model
    both = SOURCES, TARGET, encoders, shared, decoder
    early = [multiway.log_softmax(scores) for scores in multiway.early_average(*both)]
    late = multiway.late_average(*both)
    assert np.abs(np.array(early) - late).max() > 1e-3
    np.testing.assert_allclose(np.exp(late).sum(axis=1), 1)
    swapped = SOURCES[::-1], TARGET, encoders[::-1], shared, decoder
    np.testing.assert_allclose(multiway.late_average(*swapped), late)


def test_log_likelihood_of_uniform_scores():
    value = multiway.log_likelihood(np.zeros((3, 4)), [0, 1, 2])
    assert value == pytest.approx(-3 * np.log(4))


def test_closed_gate_of_deep_fusion_is_no_fusion(rng, model):
    encoders, shared, decoder = model
    lm = recurrent.random_language_model(WORDS, 2, 3, rng)
    arguments = SOURCES[0], TARGET, encoders[0], shared, decoder
    single = multiway.translate(*arguments)
    fused = multiway.fused_translate(*arguments, lm, END)
    assert (np.abs(fused - single).max(axis=1) > 1e-4).all()
    decoder["fusion.bias"][0] = -1000
    np.testing.assert_array_equal(multiway.fused_translate(*arguments, lm, END), single)


def test_language_model_reads_the_end_symbol_first(rng):
    lm = recurrent.random_language_model(WORDS, 2, 3, rng)
    states = recurrent.language_model_states([5, 6], lm, END)
    first = recurrent.gru_cell(lm["embedding"][END], np.zeros(3), lm, "gru")
    np.testing.assert_allclose(states[0], first)
    np.testing.assert_allclose(states[1], recurrent.gru_cell(lm["embedding"][5], first, lm, "gru"))
    assert recurrent.language_model_logits([5, 6], lm, END).shape == (2, WORDS)


def test_slope_of_the_reset_gate(rng):
    """A central difference through the loop equals the derivative written out by hand.

    For H = 1: dh'/db_r = (1 - u) (1 - n^2) (U_n h) r (1 - r).
    """
    params = {}
    recurrent.random_gru(1, 1, rng, params, "gru")
    x, h = np.array([0.7]), np.array([-0.4])
    w, b, u_rows = (params["gru." + n] for n in ("input.weight", "input.bias", "recurrent.weight"))
    from_input, from_state = w[:, 0] * x[0] + b, u_rows[:, 0] * h[0]
    reset, update = 1 / (1 + np.exp(-(from_input + from_state)[:2]))
    candidate = np.tanh(from_input[2] + reset * from_state[2])
    by_hand = (1 - update) * (1 - candidate**2) * from_state[2] * reset * (1 - reset)
    slope = gradient.central_difference(
        lambda: recurrent.gru_cell(x, h, params, "gru")[0], params["gru.input.bias"], (0,)
    )
    assert slope == pytest.approx(by_hand, rel=1e-7)
