"""Recogniser and captioners against loops over single numbers: values and gradients."""

import dataclasses

import numpy as np
import pytest
import torch
from twin import attentive_support as support
from twin.attentive_support import END, PAD, SPEECH

from fairseq_ext.twin.speech.modules import Window
from reference import attentive as reference
from reference.gradient import central_difference, random_entries
from reference.losses import negative_log_likelihood

# (source lengths, target lengths)
BATCHES = [((1,), (1,)), ((5,), (4,)), ((4, 7, 1), (3, 1, 5))]
REDUCTIONS = [(1,), (1, 2), (3, 1, 2)]
WINDOWS = [None, Window(1.0, 0.0, 0.4), Window(2.0, 1.2, 2.2)]


@pytest.fixture(params=BATCHES, ids=str)
def lengths(request):
    return request.param


def check_gradients(loss, expected, named, seed=0):
    """d loss / d parameter against central differences of the reference, at random places."""
    rng = np.random.default_rng(seed)
    gradients = dict(zip(named, torch.autograd.grad(loss, list(named.values()))))
    for name, tensor in named.items():
        array = tensor.detach().numpy()
        for index in random_entries(array, 2, rng):
            derivative = central_difference(expected, array, index)
            assert gradients[name][index].item() == pytest.approx(derivative, abs=2e-6), name


@pytest.mark.parametrize("reduction", REDUCTIONS, ids=str)
def test_encoder(lengths, reduction):
    encoder = support.speech_encoder(dataclasses.replace(SPEECH, time_reduction=reduction))
    frames, padding = support.batch_of_rows(lengths[0], support.FEATURES)
    states, left = encoder(frames, padding)
    params, rng = support.arrays(encoder), np.random.default_rng(1)
    sentences = [
        reference.speech_encoder(row[:length].detach().numpy(), params, reduction)
        for row, length in zip(frames, lengths[0])
    ]
    for computed, mask, expected in zip(states, left, sentences):
        assert (~mask).sum() == len(expected)
        np.testing.assert_allclose(computed[: len(expected)].detach(), expected, atol=1e-12)
    weights = torch.from_numpy(rng.normal(size=states.shape)).masked_fill(left.unsqueeze(2), 0)

    def expected():
        total = 0.0
        for row, length, weight in zip(frames, lengths[0], weights):
            encoded = reference.speech_encoder(row[:length].detach().numpy(), params, reduction)
            total += (encoded * weight[: len(encoded)].numpy()).sum()
        return total

    trained = {
        name: parameter for name, parameter in encoder.named_parameters() if parameter.requires_grad
    }
    check_gradients((states * weights).sum(), expected, trained)


@pytest.mark.parametrize("window", WINDOWS, ids=["free", "slow", "moving"])
@pytest.mark.parametrize("literal", [True, False], ids=["literal", "fused"])
def test_speech_decoder(lengths, window, literal):
    decoder = support.speech_decoder()
    width = 2 * SPEECH.encoder_hidden_size
    annotations, padding = support.batch_of_rows(lengths[0], width)
    sentences, prev, target = support.batch_of_words(lengths[1])
    masked = window.mask(padding, prev.size(1)) if window else None
    readout, steps = decoder.unroll(prev, annotations, padding, masked, literal)
    logits, params = decoder.logits(readout), support.arrays(decoder)

    def run(number):
        source = annotations[number, : lengths[0][number]].detach().numpy()
        return reference.speech_decoder(sentences[number].tolist(), source, params, END, window)

    for number, length in enumerate(lengths[1]):
        scores, states, weights = run(number)
        got = (logits[number], steps.states[number], steps.weights[number, :, : weights.shape[1]])
        for tensor, array in zip(got, (scores, states, weights)):
            np.testing.assert_allclose(tensor[:length].detach(), array, atol=1e-12)
        assert not steps.weights[number, :length, weights.shape[1] :].any()

    def expected():
        return sum(
            negative_log_likelihood(run(number)[0], sentence.tolist(), PAD)[0]
            for number, sentence in enumerate(sentences)
        )

    loss = support.likelihood(logits, target)
    named = {**dict(decoder.named_parameters()), "annotations": annotations}
    check_gradients(loss, expected, named)


@pytest.mark.parametrize("literal", [True, False], ids=["literal", "fused"])
@pytest.mark.parametrize("kind", ["plain", "attentive"])
def test_captions(lengths, kind, literal):
    decoder = support.plain_decoder() if kind == "plain" else support.caption_decoder()
    oracle = reference.plain_caption if kind == "plain" else reference.attentive_caption
    features, padding = support.batch_of_rows(lengths[0], support.FEATURES)
    sentences, prev, target = support.batch_of_words(lengths[1])
    readout, steps = decoder.unroll(prev, features, padding, literal=literal)
    logits, params = decoder.logits(readout), support.arrays(decoder)
    states = steps if kind == "plain" else steps.states

    def run(number):
        image = features[number, : lengths[0][number]].detach().numpy()
        return oracle(sentences[number].tolist(), image, params, END)

    for number, length in enumerate(lengths[1]):
        from_loops = run(number)
        np.testing.assert_allclose(logits[number, :length].detach(), from_loops[0], atol=1e-12)
        np.testing.assert_allclose(states[number, :length].detach(), from_loops[1], atol=1e-12)
        if kind == "attentive":
            looks = steps.weights[number, :length, : lengths[0][number]].detach()
            np.testing.assert_allclose(looks, from_loops[2], atol=1e-12)

    def expected():
        return sum(
            negative_log_likelihood(run(number)[0], sentence.tolist(), PAD)[0]
            for number, sentence in enumerate(sentences)
        )

    trained = {name: tensor for name, tensor in decoder.named_parameters() if tensor.requires_grad}
    check_gradients(support.likelihood(logits, target), expected, trained)
