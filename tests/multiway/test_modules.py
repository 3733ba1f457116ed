"""Encoder, attention, initialiser, decoder and readout against the NumPy loops of the paper.

Legend: B sentences, S source positions, T target positions, K beams, V words.
"""

import numpy as np
import pytest
import torch
from multiway.support import Case, gradient_of
from toy_sentences import END, PAD, previous, rows

from fairseq_ext.multiway.modules import MultiwayDecoder, MultiwayEncoder, MultiwaySize, decode
from reference import gradient
from reference import multiway as reference

TOLERANCE = 1e-10
# (lengths of the targets, lengths of the sources) of one batch
BATCHES = [([1], [1]), ([4], [1]), ([1], [5]), ([2, 5, 1], [4, 1, 3]), ([4, 4], [3, 3])]


@pytest.fixture(params=BATCHES, ids=lambda lengths: f"{lengths[1]}-{lengths[0]}")
def case(request):
    targets, sources = request.param
    return Case(sum(targets) + 10 * sum(sources), targets, sources)


@pytest.fixture(params=[False, True], ids=["right-padded", "left-padded"])
def left(request):
    return request.param


def close(actual, expected):
    np.testing.assert_allclose(actual.detach().numpy(), expected, atol=TOLERANCE, rtol=1e-9)


def reference_annotations(case, number):
    return reference.encode(case.sources[0][number], case.encoders[0])


def random_queries(case, count):
    """d_t of ``count`` rows, made of random embeddings and states by Eq. 12."""
    width, units = case.size.embed_dim, case.size.hidden_size
    before, states = case.rng.normal(size=(count, width)), case.rng.normal(size=(count, units))
    queries = [reference.query(e, z, case.params["decoder"]) for e, z in zip(before, states)]
    return before, states, np.array(queries)


def test_annotations_are_eq_9(case, left):
    [(annotations, padding)] = case.encode(left)
    for number, sentence in enumerate(case.sources[0]):
        close(annotations[number, : len(sentence)], reference_annotations(case, number))
        assert padding[number].tolist() == [
            position >= len(sentence) for position in range(padding.size(1))
        ]


@pytest.mark.parametrize("beams", [1, 2])
def test_attention_is_eq_10_3_and_4(case, left, beams):
    """Weights and context, for the rows of a beam as well."""
    shared = case.modules["shared"]
    source = shared.prepare(*case.encode(left)[0])
    _, _, queries = random_queries(case, beams * len(case.targets))
    context, weights = shared(torch.from_numpy(queries), source)
    for row, query in enumerate(queries):
        annotations = reference_annotations(case, row // beams)
        expected = reference.attention_weights(annotations, query, case.params["shared"])
        close(weights[row, : len(annotations)], expected)
        assert not weights[row, len(annotations) :].any()
        close(context[row], reference.context(annotations, expected, case.params["shared"]))


def test_initial_state_is_eq_11(case, left):
    source = case.modules["shared"].prepare(*case.encode(left)[0])
    states = case.modules["decoder"].initial_state([source])
    for number in range(len(case.targets)):
        annotations = reference_annotations(case, number)
        expected = reference.initial_state(
            annotations, case.params["shared"], case.params["decoder"]
        )
        close(states[number], expected)


def test_step_is_eq_12_and_5(case):
    decoder, shared = case.modules["decoder"], case.modules["shared"]
    before, states, queries = random_queries(case, len(case.targets))
    source = shared.prepare(*case.encode()[0])
    after, contexts, [weights] = decoder.step(
        torch.from_numpy(before), torch.from_numpy(states), shared, [source]
    )
    for row, query in enumerate(queries):
        annotations = reference_annotations(case, row)
        alpha = reference.attention_weights(annotations, query, case.params["shared"])

        def context_of(d, annotations=annotations):
            weights = reference.attention_weights(annotations, d, case.params["shared"])
            return reference.context(annotations, weights, case.params["shared"])

        expected = reference.step(before[row], states[row], context_of, case.params["decoder"])
        close(after[row], expected[0])
        close(contexts[row], expected[1])
        close(weights[row, : len(annotations)], alpha)


def test_readout_is_eq_7(case):
    decoder, rng = case.modules["decoder"], case.rng
    widths = case.size.embed_dim, case.size.hidden_size, case.size.hidden_size
    vectors, states, contexts = (rng.normal(size=(2, 3, width)) for width in widths)
    mixed = decoder.readout(*(torch.from_numpy(part) for part in (vectors, states, contexts)))
    logits = decoder.logits(mixed)
    for row in np.ndindex(2, 3):
        arrays = vectors[row], states[row], contexts[row]
        close(logits[row], reference.readout(*arrays, case.params["decoder"]))


@pytest.mark.parametrize("path", ["fused", "literal", "stepwise"])
def test_whole_model(case, left, path):
    with torch.no_grad():
        if path == "stepwise":
            logits = case.stepwise_logits(left)
        else:
            logits = case.logits(left, literal=path == "literal")
    for number, target in enumerate(case.targets):
        close(logits[number, : len(target)], case.reference_logits(number))


@pytest.mark.parametrize("literal", [False, True], ids=["fused", "literal"])
@pytest.mark.parametrize("lengths", [([1], [1]), ([3, 1, 4], [2, 4, 1])], ids=["one", "batch"])
def test_gradient_of_every_parameter(lengths, literal):
    """d(-log-likelihood, Eq. 8) against central differences, sources padded on the left."""
    case = Case(31, *lengths)
    loss = case.loss(case.logits(left=True, literal=literal))
    assert loss.item() == pytest.approx(case.reference_loss(), rel=1e-10)
    loss.backward()
    assert_gradients(case)


def assert_gradients(case, entries=2):
    checked = 0
    for part, params in case.params.items():
        for name, array in params.items():
            computed = gradient_of(case.modules[part], case.places[part], name, array.shape)
            for index in gradient.random_entries(array, entries, case.rng):
                if name == "embedding":
                    index = (used_word(case, part), index[1])
                expected = gradient.central_difference(case.reference_loss, array, index)
                assert computed[index] == pytest.approx(expected, rel=1e-5, abs=1e-8), (part, name)
                checked += abs(expected) > 1e-6
    assert checked > 10  # the loss depends on what was compared


def used_word(case, part):
    """A word of the batch; the decoder does not read the last ones."""
    if part == "decoder":
        return case.targets[0][0]
    return case.sources[int(part[-1])][0][0]


def test_embedding_gradient_is_that_of_the_words_read():
    """All rows of both embeddings: the end symbol is read by the encoder, not by the decoder.

    The decoder is fed the end symbol first, but its vector there is y_0, the zero vector.
    """
    case = Case(33, [3, 2], [2, 3])
    case.loss(case.logits()).backward()
    for part in ("encoder0", "decoder"):
        array = case.params[part]["embedding"]
        computed = case.modules[part].embedding.weight.grad
        for word in range(len(array)):
            expected = gradient.central_difference(case.reference_loss, array, (word, 0))
            assert computed[word, 0].item() == pytest.approx(expected, rel=1e-5, abs=1e-8), part
    assert case.modules["encoder0"].embedding.weight.grad[END].any()
    assert not case.modules["decoder"].embedding.weight.grad[END].any()


@pytest.mark.parametrize("lengths", [([1], [1], [1]), ([3, 2, 4], [1, 4, 2], [5, 2, 1])], ids=str)
def test_early_average_of_two_sources(lengths, left):
    """One decoder state; contexts and initial states are means (Firat et al. 2016b)."""
    case = Case(41, *lengths)
    with torch.no_grad():
        together, stepwise = case.logits(left), case.stepwise_logits(left)
    for number, target in enumerate(case.targets):
        expected = case.reference_logits(number)
        close(together[number, : len(target)], expected)
        close(stepwise[number, : len(target)], expected)


def test_gradient_of_the_early_average():
    case = Case(42, [2, 3], [3, 1], [2, 4])
    loss = case.loss(case.logits(left=True))
    assert loss.item() == pytest.approx(case.reference_loss(), rel=1e-10)
    loss.backward()
    assert_gradients(case, entries=1)


def test_one_word_of_the_target_at_each_row_of_a_beam():
    """R = B * K rows over B encoded sentences, without a cache."""
    case = Case(51, [4, 4, 4, 4], [3, 5])
    decoder = case.modules["decoder"]
    readout, [weights] = decode(
        decoder, case.modules["shared"], case.encode(), previous(case.targets)
    )
    logits = decoder.logits(readout)
    for row, target in enumerate(case.targets):
        expected = reference.translate(
            case.sources[0][row // 2],
            target,
            case.encoders[0],
            case.params["shared"],
            case.params["decoder"],
        )
        close(logits[row], expected)
    assert weights.shape == (4, 4, 5)


@pytest.mark.parametrize("sources", [[[4, 2]], [[4, 2], [1, 3]]], ids=["one", "two"])
def test_attention_weights_of_all_paths_agree(sources):
    """One array of weights for each source, a distribution over its real words."""
    case = Case(52, [3, 2], *sources)
    decoder, shared = case.modules["decoder"], case.modules["shared"]
    prev, encoded = previous(case.targets), case.encode()
    _, whole = decode(decoder, shared, encoded, prev)
    _, literal = decode(decoder, shared, encoded, prev, literal=True)
    cache = {}
    steps = [decode(decoder, shared, encoded, prev[:, : t + 1], cache)[1] for t in range(3)]
    assert len(whole) == len(literal) == len(sources)
    for number, (_, padding) in enumerate(encoded):
        stepwise = torch.cat([weights[number] for weights in steps], dim=1)
        torch.testing.assert_close(whole[number], literal[number])
        torch.testing.assert_close(stepwise, literal[number])
        total = whole[number].masked_fill(padding.unsqueeze(1), 0.0).sum(dim=-1)
        torch.testing.assert_close(total, torch.ones(2, 3, dtype=torch.float64))


def test_sources_are_read_once_with_a_cache():
    """After the first step the encoder's output may be anything."""
    case = Case(53, [3, 3], [4, 2])
    decoder, shared = case.modules["decoder"], case.modules["shared"]
    prev, cache = previous(case.targets), {}
    expected = case.logits()
    decode(decoder, shared, case.encode(), prev[:, :1], cache)
    readout, _ = decode(decoder, shared, [(None, None)], prev[:, :2], cache)
    torch.testing.assert_close(decoder.logits(readout)[:, 0], expected[:, 1])


def test_dropout_acts_in_training_only():
    size = MultiwaySize(8, 6, 5, 7, 3, 4, dropout=0.5)
    torch.manual_seed(0)
    encoder, decoder = MultiwayEncoder(size, 4, 9, PAD), MultiwayDecoder(size, 9, PAD)
    tokens = rows([[4, 5, 6, 7, 8, END]])
    functions = (
        lambda: encoder.encode(tokens)[0],
        lambda: decoder.embed(tokens, first=True),
        lambda: decoder.readout(*(torch.ones(1, 3, width) for width in (8, 6, 6))),
    )
    for module, function in zip((encoder, decoder, decoder), functions):
        module.train()
        assert not torch.equal(function(), function())
        module.eval()
        assert torch.equal(function(), function())


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("embed_dim", 0, "--embed-dim 0: must be at least 1"),
        ("hidden_size", -3, "--hidden-size -3: must be at least 1"),
        ("context_size", 0, "--context-size 0"),
        ("readout_size", 0, "--readout-size 0"),
        ("init_hidden_size", 0, "--init-hidden-size 0"),
        ("init_size", 0, "--init-size 0"),
        ("dropout", 1.0, r"--dropout 1.0: must be in \[0, 1\)"),
        ("dropout", -0.1, "--dropout -0.1"),
    ],
)
def test_impossible_sizes_name_the_option(field, value, message):
    with pytest.raises(ValueError, match=message):
        MultiwaySize(**{field: value})


def test_default_sizes_are_those_of_the_paper():
    """Sec. 5.3: 620, 1000, 1200, 1000 units of the readout."""
    size = MultiwaySize()
    sizes = size.embed_dim, size.hidden_size, size.context_size, size.readout_size
    assert sizes == (620, 1000, 1200, 1000)
    assert size.dropout == 0


def first_vector_is_the_end_symbol(case, monkeypatch):
    """Consistent between training and decoding: the properties cannot see it."""
    monkeypatch.setattr(
        MultiwayDecoder, "embed", lambda self, tokens, first: self.embedding(tokens)
    )


def context_bias_is_forgotten(case, monkeypatch):
    torch.nn.init.zeros_(case.modules["shared"].value.bias)


def gates_are_exchanged(case, monkeypatch):
    """Reset and update gate of the decoder."""
    weight = case.modules["decoder"].gates_state.weight
    reset, update, candidate = weight.detach().clone().chunk(3)
    weight.data.copy_(torch.cat([update, reset, candidate]))


def keys_without_tanh(case, monkeypatch):
    real = case.modules["shared"].prepare

    def twin(annotations, padding):
        keys = case.modules["shared"].key(annotations)
        return real(annotations, padding)._replace(keys=keys)

    monkeypatch.setattr(case.modules["shared"], "prepare", twin)


def initial_state_reads_the_last_word(case, monkeypatch):
    real = case.modules["shared"].prepare

    def twin(annotations, padding):
        last = (~padding).sum(dim=1) - 1
        rows = torch.arange(len(last))
        first = torch.cat([annotations[rows, last].unsqueeze(1), annotations[:, 1:]], dim=1)
        return real(annotations, padding)._replace(initial=real(first, padding).initial)

    monkeypatch.setattr(case.modules["shared"], "prepare", twin)


def readout_reads_the_state_before(case, monkeypatch):
    real = case.modules["decoder"].readout

    def twin(vectors, states, contexts, extra=None):
        before = torch.cat([torch.zeros_like(states[:, :1]), states[:, :-1]], dim=1)
        return real(vectors, before, contexts, extra)

    monkeypatch.setattr(case.modules["decoder"], "readout", twin)


TWINS = [
    first_vector_is_the_end_symbol,
    context_bias_is_forgotten,
    gates_are_exchanged,
    keys_without_tanh,
    initial_state_reads_the_last_word,
    readout_reads_the_state_before,
]


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__)
def test_whole_model_is_not_its_twin(monkeypatch, twin):
    """The comparison with the reference sees each of these mistakes."""
    case = Case(61, [3, 2], [4, 2])
    expected = case.reference_logits(0)
    close(case.logits()[0], expected)
    twin(case, monkeypatch)
    assert np.abs(case.logits()[0].detach().numpy() - expected).max() > 1e-4
