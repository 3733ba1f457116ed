"""Recogniser and captioners under the criterion ``twin``: the whole objective against loops.

Legend: n tokens of a sentence with its end, D state.
"""

import dataclasses

import numpy as np
import pytest
import torch
from twin import attentive_support as support
from twin.attentive_support import CAPTION, END, PAD, SPEECH, WORDS

from fairseq_ext.streams.direction import TargetSide
from fairseq_ext.twin.attentive.feature_source import FeatureSource
from fairseq_ext.twin.captions.model import (
    TwinCaptionAttentionModel,
    TwinCaptionModel,
    unroll_attentive,
    unroll_plain,
)
from fairseq_ext.twin.captions.modules import Annotations
from fairseq_ext.twin.contract import BackwardDecoder
from fairseq_ext.twin.criterion import TwinCriterion
from fairseq_ext.twin.modules import TwinPenalty
from fairseq_ext.twin.speech import model as speech
from fairseq_ext.twin.speech.modules import Window
from properties import check_gradient_everywhere, check_no_gradient
from reference import attentive as reference
from reference.losses import negative_log_likelihood
from reference.recurrent import affine

ALPHA = 1.5
KINDS = ["speech", "plain", "attentive"]
MAKE = {
    "speech": support.speech_decoder,
    "plain": support.plain_decoder,
    "attentive": support.caption_decoder,
}
RUN = {"speech": speech.unroll_backward, "plain": unroll_plain, "attentive": unroll_attentive}


class Words:
    """The part of a task and of its dictionary that models and criterion read."""

    target_dictionary = property(lambda self: self)

    def pad(self):
        return PAD

    def __len__(self):
        return WORDS


def build(kind, window_updates=0):
    """(model, criterion)."""
    target = TargetSide(MAKE[kind](seed=1), Words(), 100)
    if kind == "speech":
        encoder, window = support.speech_encoder(), Window(1.0, 0.0, 0.5)
        source = FeatureSource(encoder, 100)
        model = speech.TwinSpeechModel(source, target, window, window_updates)
    else:
        source = FeatureSource(Annotations(CAPTION.feature_size), None)
        plain = kind == "plain"
        model = (TwinCaptionModel if plain else TwinCaptionAttentionModel)(source, target)
    size = SPEECH.hidden_size
    network = BackwardDecoder(MAKE[kind](seed=7), size, RUN[kind])
    penalty = support.randomise(TwinPenalty(state_size=size), seed=8)
    return model.double(), TwinCriterion(Words(), ALPHA, penalty, network)


def batch(source_lengths=(5, 7, 3), target_lengths=(4, 1, 3)):
    frames, _ = support.batch_of_rows(source_lengths, support.FEATURES)
    sentences, prev, target = support.batch_of_words(target_lengths)
    inputs = {
        "src_tokens": frames.detach(),
        "src_lengths": torch.tensor(source_lengths),
        "prev_output_tokens": prev,
    }
    return {"net_input": inputs, "target": target, "ntokens": sum(target_lengths)}, sentences


def objective(kind, model, twin_loss, sample, sentences, *window):
    """The sum over the batch, by the loops; window: of pre-training."""
    oracle = {
        "speech": reference.speech_decoder,
        "plain": reference.plain_caption,
        "attentive": reference.attentive_caption,
    }[kind]
    forward, backward = map(support.arrays, (model.decoder.module, twin_loss.network.decoder))
    penalty, total = support.arrays(twin_loss.penalty), 0.0
    inputs = sample["net_input"]
    for rows, length, sentence in zip(inputs["src_tokens"], inputs["src_lengths"], sentences):
        source = reversed_source = rows[:length].numpy()
        if kind == "speech":
            arrays = support.arrays(model.encoder.module)
            source = reference.speech_encoder(source, arrays, SPEECH.time_reduction)
            reversed_source = source[::-1]
        target = sentence.tolist()
        reverse = [*target[:-1][::-1], END]
        logits, states = oracle(target, source, forward, END, *window)[:2]
        logits_b, states_b = oracle(reverse, reversed_source, backward, END, *window)[:2]
        total += negative_log_likelihood(logits, target, PAD)[0]
        total += negative_log_likelihood(logits_b, reverse, PAD)[0]
        last = len(target) - 2  # the token before the end
        for t in range(last + 1):
            mapped = affine(states[t], penalty["map.weight"], penalty["map.bias"])
            total += ALPHA * np.mean((mapped - states_b[last - t]) ** 2)
    return total


@pytest.mark.parametrize("kind", KINDS)
def test_objective(kind):
    (model, twin_loss), (sample, sentences) = build(kind), batch()
    loss, sample_size, log = twin_loss(model, sample)
    expected = objective(kind, model, twin_loss, sample, sentences)
    assert loss.item() == pytest.approx(expected, rel=1e-9) and sample_size == 8
    assert log["matched"] == 8 - 3


def test_objective_in_pre_training():
    """Through the window, which for the backward network moves from the end; never at padding."""
    (model, twin_loss), (sample, sentences) = build("speech", window_updates=3), batch((2, 7, 3))
    loss, _, _ = twin_loss(model, sample)
    expected = objective("speech", model, twin_loss, sample, sentences, model.window)
    assert loss.item() == pytest.approx(expected, rel=1e-9)


def test_a_source_that_is_not_mirrored_is_found(monkeypatch):
    (model, twin_loss), (sample, sentences) = build("speech"), batch()
    twin_loss.network.unroll = speech.unroll
    loss, _, _ = twin_loss(model, sample)
    expected = objective("speech", model, twin_loss, sample, sentences)
    assert abs(loss.item() - expected) > 1e-3


def trained(module):
    return [
        (name, parameter)
        for name, parameter in module.named_parameters()
        if parameter.requires_grad
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_go_where_the_paper_says(kind):
    (model, twin_loss), (sample, _) = build(kind), batch()
    call, predicted = twin_loss.call(sample)
    (logits, _), output = model(**sample["net_input"], twin=call)
    penalty, _ = twin_loss.distance(output, sample["target"].eq(PAD))
    forward_loss = support.likelihood(logits, sample["target"])
    backward_loss = support.likelihood(output.backward_logits, predicted)
    check_no_gradient(penalty.sum(), trained(twin_loss.network))
    check_gradient_everywhere(penalty.sum(), trained(twin_loss.penalty))
    check_no_gradient(forward_loss, trained(twin_loss.network))
    check_gradient_everywhere(backward_loss, trained(twin_loss.network))
    check_no_gradient(backward_loss, trained(model.decoder))
    if kind == "speech":
        for term in (forward_loss, backward_loss, penalty.sum()):
            check_gradient_everywhere(term, trained(model.encoder))


@pytest.mark.parametrize("kind", KINDS)
def test_encoder_runs_once_for_both(kind):
    (model, twin_loss), (sample, _) = build(kind), batch()
    calls = []
    model.encoder.module.register_forward_hook(lambda *_: calls.append(1))
    twin_loss(model, sample)
    assert len(calls) == 1


def test_window_moves_in_pre_training_alone():
    model, twin_loss = build("speech", window_updates=3)
    sample, _ = batch()

    def looks(training, updates):
        model.train(training)
        model.set_num_updates(updates)
        return model(**sample["net_input"])[1]["attn"][0]

    open_wide, narrow = looks(True, 3), looks(True, 2)
    # the first character sees the first position only
    assert not narrow[0, 0, 1:].any() and open_wide[0, 0, 1:].any()
    assert torch.equal(looks(False, 0), open_wide)
    model.train().set_num_updates(0)
    seen = []
    twin_loss.network.register_forward_pre_hook(lambda _module, given: seen.append(given[1]))
    model(**sample["net_input"], twin=twin_loss.call(sample)[0])
    ((_, _, window),) = seen
    assert window == model.window


def given(**values):
    return dataclasses.replace(speech.TwinSpeechConfig(), **values)


@pytest.mark.parametrize(
    "read, values, message",
    [
        (speech.size_of, {"conv_width": 4}, "--conv-width 4: must be odd"),
        (speech.size_of, {"conv_filters": 0}, "--conv-filters 0: must be at least 1"),
        (speech.size_of, {"dropout": 1.0}, r"--dropout 1.0: must be in \[0, 1\)"),
        (speech.size_of, {"time_reduction": "1,0"}, "--time-reduction 1,0: must be numbers from 1"),
        (speech.size_of, {"time_reduction": "1,x"}, "--time-reduction '1,x': must be numbers with"),
        (speech.size_of, {"time_reduction": ""}, "--time-reduction '': must be numbers with"),
        (speech.window_of, {"window": "3,1"}, "--window '3,1': must be FIRST,SLOWEST,FASTEST"),
        (speech.window_of, {"window": "3,2,1"}, "--window '3,2,1': must be"),
        (speech.window_of, {"window": "0,1,2"}, "--window '0,1,2': must be"),
        (speech.window_of, {"window": "3,1,2"}, "--window 3,1,2: is used in pre-training alone"),
        (speech.window_of, {"window_updates": -1}, "--window-updates -1: must be at least 0"),
    ],
)
def test_bad_options_name_themselves(read, values, message):
    with pytest.raises(ValueError, match=message):
        read(given(**values))


def test_defaults_are_the_papers():
    size, window = speech.size_of(given()), speech.window_of(given())
    assert size.time_reduction == (1, 1, 2, 2) and size.conv_width == 201
    assert window == Window(40, 1.2, 2.2)


def test_features_of_another_width_are_named():
    model, _ = build("attentive")
    with pytest.raises(ValueError, match="--feature-size 3: the files have 5 features"):
        model.encoder(torch.zeros(1, 2, 5, dtype=torch.float64))
