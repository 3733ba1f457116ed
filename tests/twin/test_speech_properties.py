"""What holds of the recogniser and the captioners, and twins for which it does not.

The checks of tests/properties.py give words to the encoder: here each word stands for a random
vector, and padding for a large one.
"""

import pytest
import torch
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel
from twin import attentive_support as support
from twin.attentive_support import CAPTION, END, PAD, WORDS

from fairseq_ext.common import decoding
from fairseq_ext.streams.direction import TargetSide
from fairseq_ext.twin.attentive import layer as attentive_layer
from fairseq_ext.twin.attentive.feature_source import FeatureSource
from fairseq_ext.twin.captions.modules import Annotations
from fairseq_ext.twin.speech import modules as speech_modules
from properties import (
    check_batch_mate_invariance,
    check_beam_reorder,
    check_causality,
    check_padding_invariance,
    check_save_load,
    check_sees_everything,
    check_stepwise,
    collate,
    random_sentences,
    shift,
)

KINDS = ["speech", "plain", "attentive"]


class Words:
    """The part of fairseq's Dictionary that decoders use."""

    def __len__(self):
        return WORDS


class VectorsOfWords(FairseqEncoder):
    """A source side that is given words."""

    def __init__(self, inner):
        super().__init__(None)
        self.inner = inner
        table = torch.randn(WORDS, support.FEATURES, generator=torch.Generator().manual_seed(9))
        table[PAD] = 30.0
        self.register_buffer("table", table.double(), persistent=False)

    def forward(self, src_tokens, src_lengths=None, **_unused):
        return self.inner(self.table[src_tokens], src_lengths)

    def reorder_encoder_out(self, encoder_out, new_order):
        return self.inner.reorder_encoder_out(encoder_out, new_order)


def build(kind, seed=0, source=FeatureSource):
    """A model with random weights."""
    if kind == "speech":
        encoder, decoder = support.speech_encoder(seed=seed), support.speech_decoder(seed=seed + 1)
    else:
        encoder = Annotations(CAPTION.feature_size)
        make = support.plain_decoder if kind == "plain" else support.caption_decoder
        decoder = make(seed=seed)
    inner = source(encoder, 100)
    target = TargetSide(decoder, Words(), 100)
    return FairseqEncoderDecoderModel(VectorsOfWords(inner), target).double()


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


SOURCES = random_sentences((7, 5, 1), WORDS, END, seed=1)
TARGETS = random_sentences((5, 2, 4), WORDS, END, seed=2)
FULL = collate(random_sentences((6, 6), WORDS, END, seed=3), PAD)
PREVIOUS = collate(shift(random_sentences((5, 5), WORDS, END, seed=4)), PAD)


def check_padding(model):
    check_padding_invariance(model, SOURCES, TARGETS, PAD, left_pad_source=False)


def check_beams(model):
    source = collate(SOURCES[:2], PAD)
    check_beam_reorder(model, source, END, PAD, words=WORDS)


def test_padding_and_batch_mates(kind):
    model = build(kind)
    check_padding(model)
    check_batch_mate_invariance(model, SOURCES, TARGETS, PAD, words=WORDS)


def test_causality(kind):
    check_causality(build(kind), FULL, PREVIOUS, PAD, words=WORDS)


def test_encoder_sees_everything():
    check_sees_everything(
        build("speech"), FULL, PAD, words=WORDS, states=lambda out: out["encoded"][0][0]
    )


def test_stepwise_and_beams(kind):
    model = build(kind)
    check_stepwise(model, FULL, PREVIOUS, PAD)
    check_beams(model)


def test_save_and_load(kind):
    check_save_load(build(kind), lambda: build(kind, seed=5), FULL, PREVIOUS, PAD)


def test_source_is_kept_once_per_sentence(kind):
    """Beams share keys, values and padding; only states have a row for each."""
    model, beams = build(kind).eval(), 3
    encoder_out = model.encoder(FULL, FULL.ne(PAD).sum(dim=1))
    owners = torch.arange(len(FULL)).repeat_interleave(beams)
    encoder_out, state = model.encoder.reorder_encoder_out(encoder_out, owners), {}
    prefixes = torch.full((len(owners), 1), END)
    model.decoder(prefixes, encoder_out=encoder_out, incremental_state=state)
    (cache,) = state.values()
    sizes = {name: len(rows) for name, rows in cache.items()}
    of_source = {name for name in sizes if name.startswith("context_")}
    assert of_source and all(sizes[name] == len(FULL) for name in of_source)
    assert all(sizes[name] == len(owners) for name in set(sizes) - of_source)


# ---------------------------------------------------------------- broken twins


class LengthsAreIgnored(FeatureSource):
    def forward(self, src_tokens, src_lengths=None, **_unused):
        return super().forward(src_tokens)


def flipped(padding):
    """Reverses the padded row, so that the backward LSTM begins with the padding."""
    length = padding.size(1)
    return torch.arange(length).flip(0).expand(padding.size(0), -1)


def test_padding_that_is_read_is_found(kind):
    with pytest.raises(AssertionError, match="padding of sentence"):
        check_padding(build(kind, source=LengthsAreIgnored))


def test_a_flipped_batch_is_found(monkeypatch):
    monkeypatch.setattr("fairseq_ext.common.recurrent.reversal", flipped)
    with pytest.raises(AssertionError, match="padding of sentence"):
        check_padding(build("speech"))


def test_padding_that_is_looked_at_is_found(monkeypatch):
    def everywhere(padding, steps):
        return torch.zeros(steps, *padding.shape, dtype=torch.bool)

    monkeypatch.setattr(attentive_layer, "padding_at_every_step", everywhere)
    for kind in ("speech", "attentive"):
        with pytest.raises(AssertionError, match="padding of sentence"):
            check_padding(build(kind))


def forgets(name):
    """A step that leaves what it found under ``name`` as it was at the start."""
    step = attentive_layer.AttentiveLSTM.step

    def forgetful(self, inputs, before, source, masked=None):
        after = step(self, inputs, before, source, masked)
        return after._replace(**{name: getattr(before, name)})

    return forgetful


@pytest.mark.parametrize("name", attentive_layer.StepState._fields)
def test_a_forgotten_part_of_the_state_is_found(name, monkeypatch):
    monkeypatch.setattr(attentive_layer.AttentiveLSTM, "step", forgets(name))
    with pytest.raises(AssertionError, match="pass, step"):
        check_stepwise(build("speech"), FULL, PREVIOUS, PAD)


@pytest.mark.parametrize("name", attentive_layer.StepState._fields)
def test_a_part_that_stays_behind_is_found(name, monkeypatch):
    def all_but_one(cache, new_order):
        tensor = cache[name]
        decoding.reorder_cache(cache, new_order)
        cache[name] = tensor[: len(new_order)]

    monkeypatch.setattr("fairseq_ext.streams.direction.reorder_cache", all_but_one)
    with pytest.raises(AssertionError, match="after re-ordering"):
        check_beams(build("speech"))


def test_a_source_that_is_read_backwards_in_part_is_found(monkeypatch):
    """The backward network reads the source from its end: not from the end of the padding."""
    annotations, padding = support.batch_of_rows((5, 3), 4)
    expected = [row[:length].flip(0) for row, length in zip(annotations, (5, 3))]

    def same():
        mirrored = speech_modules.mirrored(annotations, padding)
        return all(
            torch.equal(row[: len(sentence)], sentence) for row, sentence in zip(mirrored, expected)
        )

    assert same()
    monkeypatch.setattr(speech_modules, "reversal", flipped)
    assert not same()
