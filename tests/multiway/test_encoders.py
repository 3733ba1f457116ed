"""Encoders of other types (Sec. 4): references, gradients, properties, options.

Legend: B sentences, S source positions, G units in each direction, C = 2G channels.
"""

import numpy as np
import pytest
import torch
from multiway.support import random_sizes
from multiway.test_model import model_of
from streams.directions import CHECKS, randomise, sees_everything, some_rows
from toy_sentences import PAD, random_sentence, rows

from fairseq_ext.multiway.config import encoder_sizes
from fairseq_ext.multiway.encoders import LAYERS, Convolutions
from fairseq_ext.multiway.modules import MultiwayEncoder
from reference import attentive, gradient
from reference import multiway as reference

TYPES = {"lstm": attentive.bidirectional_lstm, "convolution": reference.convolutions}
LENGTHS = [[1], [5], [3, 1, 9, 2]]


def filled(kind, seed, lengths):
    """(encoder, the reference's arrays by the names of its parameters, sentences), all random."""
    rng = np.random.default_rng(seed)
    size, _ = random_sizes(rng)
    encoder = MultiwayEncoder(size, int(rng.integers(1, 4)), 9, PAD, kind).double()
    arrays = {}
    for name, parameter in encoder.named_parameters():
        if parameter.requires_grad:
            arrays[name] = rng.normal(size=tuple(parameter.shape)) * 0.6
            with torch.no_grad():
                parameter.copy_(torch.from_numpy(arrays[name]))
    return encoder, arrays, [random_sentence(rng, length, 9) for length in lengths]


def expected_annotations(kind, arrays, sentence):
    """h (S, A) by the loops of the reference."""
    inputs = [arrays["embedding.weight"][word] for word in sentence]
    states = TYPES[kind](inputs, arrays, "recurrence")
    return np.array([arrays["adapt.weight"] @ state + arrays["adapt.bias"] for state in states])


@pytest.mark.parametrize("literal", [False, True], ids=["fused", "literal"])
@pytest.mark.parametrize("left", [False, True], ids=["right-padded", "left-padded"])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("kind", TYPES)
def test_annotations_are_those_of_the_reference(kind, lengths, left, literal):
    encoder, arrays, sentences = filled(kind, sum(lengths), lengths)
    annotations, padding = encoder.encode(rows(sentences, left), literal)
    for number, sentence in enumerate(sentences):
        actual = annotations[number, : len(sentence)].detach().numpy()
        expected = expected_annotations(kind, arrays, sentence)
        np.testing.assert_allclose(actual, expected, atol=1e-10, rtol=1e-9)
        assert padding[number].sum() == padding.size(1) - len(sentence)


@pytest.mark.parametrize("kind", TYPES)
def test_gradient_of_every_parameter(kind):
    """Of sum_i w_i . h_i against central differences."""
    encoder, arrays, sentences = filled(kind, 5, [4, 1, 3])
    rng = np.random.default_rng(1)
    units = encoder.adapt.out_features
    weights = [rng.normal(size=(len(sentence), units)) for sentence in sentences]

    def value():
        annotations = (expected_annotations(kind, arrays, sentence) for sentence in sentences)
        return sum((w * h).sum() for w, h in zip(weights, annotations))

    annotations, _ = encoder.encode(rows(sentences, left=True))
    total = sum(
        (torch.from_numpy(w) * annotations[number, : len(w)]).sum()
        for number, w in enumerate(weights)
    )
    total.backward()
    parameters = dict(encoder.named_parameters())
    for name, array in arrays.items():
        for index in gradient.random_entries(array, 2, rng):
            if name == "embedding.weight":
                index = (sentences[0][0], index[1])
            expected = gradient.central_difference(value, array, index)
            assert parameters[name].grad[index].item() == pytest.approx(expected, rel=1e-5), name


def test_convolutions_see_as_far_as_they_say():
    """Position 0 knows the first seven words, a later one six to each side."""
    torch.manual_seed(0)
    layer = Convolutions(3, 2).double()
    inputs = torch.randn(1, 20, 3, dtype=torch.double, requires_grad=True)
    states = layer(inputs, torch.zeros(1, 20, dtype=torch.bool))
    for position, seen in ((0, range(7)), (10, range(4, 17))):
        (grad,) = torch.autograd.grad(states[0, position].sum(), inputs, retain_graph=True)
        assert grad[0].abs().sum(dim=1).nonzero().flatten().tolist() == list(seen)
    assert len(layer.filters) == LAYERS


def test_convolutions_start_as_documented():
    torch.manual_seed(0)
    layer = Convolutions(8, 50)
    for part in layer.filters:
        bound = (6 / (3 * 100 + 3 * 100)) ** 0.5
        assert 0.95 * bound < part.weight.abs().max() <= bound
        assert not part.bias.any()


@pytest.fixture(scope="module")
def mixed():
    """xx is read by a GRU, yy by convolutions, zz by an LSTM."""
    model = model_of("xx-yy,yy-xx,zz-xx", 11, encoder_type="yy=convolution,zz=lstm")
    return randomise(model)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("pair", ["yy-xx", "zz-xx", "yy+zz-xx"])
def test_directions(words_model, pair, check):
    check(words_model.direction(pair))


@pytest.mark.parametrize("pair", ["yy-xx", "zz-xx"])
def test_encoder_sees_the_whole_sentence(words_model, pair):
    sees_everything(words_model.direction(pair))


@pytest.fixture(scope="module")
def words_model(multiway_task):
    """``mixed`` with real dictionaries."""
    flags = ["--encoder-type", "yy=convolution,zz=lstm"]
    return randomise(multiway_task(*flags)[1])


def test_padding_has_to_be_masked(words_model, monkeypatch):
    """The check of padding fails where filters see what stands behind the sentence."""
    real = Convolutions.forward

    def twin(self, inputs, padding, literal=False):
        return real(self, inputs, torch.zeros_like(padding), literal)

    monkeypatch.setattr(Convolutions, "forward", twin)
    with pytest.raises(AssertionError, match="padding of sentence"):
        CHECKS[0](words_model.direction("yy-xx"))


def test_types_by_language(mixed):
    kinds = {lang: type(part.recurrence).__name__ for lang, part in mixed.encoders.items()}
    expected = {"xx": "BidirectionalGRU", "yy": "Convolutions", "zz": "BidirectionalLSTM"}
    assert kinds == expected
    source, prev = some_rows([4, 2], 1), some_rows([3, 3], 2)
    for pair in mixed.pairs:
        mixed.zero_grad()
        mixed(source, None, prev, pair=pair)[0].sum().backward()
        lang = pair.split("-")[0]
        trained = [p for p in mixed.encoders[lang].parameters() if p.requires_grad]
        assert all(parameter.grad is not None for parameter in trained)
    everywhere = model_of("xx-yy,yy-xx", 11, encoder_type="lstm,xx=gru")
    assert type(everywhere.encoders["xx"].recurrence).__name__ == "BidirectionalGRU"
    assert type(everywhere.encoders["yy"].recurrence).__name__ == "BidirectionalLSTM"


@pytest.mark.parametrize(
    "value, message",
    [
        ("xx=cnn", "--encoder-type 'xx=cnn': 'xx=cnn' is neither one of gru, lstm, convolution"),
        ("transformer", "--encoder-type 'transformer': '=?transformer' is neither one of gru"),
        ("yy=lstm", "--encoder-type 'yy=lstm': 'yy' is not a source language.*: xx"),
        ("xx=", "is neither one of"),
    ],
)
def test_wrong_types_are_named(value, message):
    with pytest.raises(ValueError, match=message):
        model_of("xx-yy", 9, encoder_type=value)


@pytest.mark.parametrize(
    "text, langs, message",
    [
        ("8,9", ["de"], "the value of all is there twice"),
        ("de=8,de=9", ["de"], "de is there twice"),
        # of fairseq-ext add-language, when the new pairs need no new encoder
        ("8", [], "there is no encoder that would take it"),
    ],
)
def test_sizes_that_would_be_ignored_are_refused(text, langs, message):
    with pytest.raises(ValueError, match=f"--encoder-hidden-size '{text}': {message}"):
        encoder_sizes(text, langs, 4)
