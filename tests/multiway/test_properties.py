"""The shared properties of a direction, and twins of the real modules that must violate them."""

import copy

import pytest
import torch
from multiway.conftest import WORDS, randomise
from multiway.support import END, PAD

from fairseq_ext.common import recurrent
from fairseq_ext.multiway import model as model_file
from fairseq_ext.multiway import modules
from fairseq_ext.streams import direction as direction_file
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

FEWEST = min(WORDS.values())  # sentences of these words can be read in every language
DIRECTIONS = ["xx-yy", "zz-xx", "yy-zz", "yy+zz-xx"]  # the last but one is not trained for


def sentences(lengths, seed, sources=1):
    """Random sentences; of several sources one after the other, each ending in the end symbol."""
    parts = [random_sentences(lengths, FEWEST, END, seed=seed + 7 * n) for n in range(sources)]
    return [torch.cat(together) for together in zip(*parts)]


def number_of_sources(direction):
    return len(getattr(direction.encoder, "encoders", [None]))


def padding(direction, left=True):
    sources = sentences([5, 1, 3], 1, number_of_sources(direction))
    targets = sentences([4, 2, 6], 2)
    check_padding_invariance(direction, sources, targets, PAD, left_pad_source=left)


def batch_mates(direction):
    sources = sentences([5, 1, 3], 1, number_of_sources(direction))
    check_batch_mate_invariance(direction, sources, sentences([4, 2, 6], 2), PAD, words=FEWEST)


def full(direction):
    """Source and decoder inputs of two sentences without padding."""
    source = collate(sentences([4, 4], 3, number_of_sources(direction)), PAD)
    return source, collate(shift(sentences([5, 5], 4)), PAD)


def causality(direction):
    """The first input stands for y_0, whose vector is zero: only later ones are changed."""
    check_causality(direction, *full(direction), PAD, words=FEWEST)


def sees_everything(direction):
    source, _ = full(direction)
    check_sees_everything(
        direction, source, PAD, words=FEWEST, states=lambda out: out["encoded"][0][0]
    )


def stepwise(direction):
    source = collate(sentences([4, 2], 3, number_of_sources(direction)), PAD, left=True)
    check_stepwise(direction, source, full(direction)[1], PAD)


def beam_reorder(direction, lengths=(5, 2, 3), beams=3):
    source = collate(sentences(lengths, 5, number_of_sources(direction)), PAD, left=True)
    check_beam_reorder(direction, source, END, PAD, words=FEWEST, beams=beams, steps=6)


CHECKS = [padding, batch_mates, causality, stepwise, beam_reorder]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("pair", DIRECTIONS)
def test_direction(model, pair, check):
    check(model.direction(pair))


@pytest.mark.parametrize("pair", DIRECTIONS[:2])
def test_encoder_sees_the_whole_sentence(model, pair):
    sees_everything(model.direction(pair))


@pytest.mark.parametrize("pair", DIRECTIONS)
def test_right_padded_sources(model, pair):
    padding(model.direction(pair), left=False)


@pytest.mark.parametrize("lengths", [[4], [1, 1], [2, 6, 3, 1]], ids=str)
@pytest.mark.parametrize("beams", [1, 4])
def test_beams_of_other_sizes(model, lengths, beams):
    beam_reorder(model.direction("xx-yy"), lengths, beams)


def test_save_and_load(model):
    direction = model.direction("xx-yy")

    def build():
        return randomise(copy.deepcopy(direction), seed=1)

    check_save_load(direction, build, *full(direction), PAD)


def attention_is_not_masked(monkeypatch):
    real = modules.attentive_gru

    def twin(*state, padding, **rest):
        return real(*state, padding=torch.zeros_like(padding), **rest)

    monkeypatch.setattr(modules, "attentive_gru", twin)


def backward_gru_starts_in_the_padding(monkeypatch):
    def whole_row(padding):
        positions = torch.arange(padding.size(1) - 1, -1, -1)
        return positions.expand(padding.shape)

    monkeypatch.setattr(recurrent, "reversal", whole_row)


def backward_states_are_not_turned_back(monkeypatch):
    real = recurrent.BidirectionalGRU.forward

    def twin(self, inputs, padding, literal=False):
        states = real(self, inputs, padding, literal)
        ahead, back = states.chunk(2, dim=2)
        return torch.cat([ahead, back.flip(1)], dim=2)

    monkeypatch.setattr(recurrent.BidirectionalGRU, "forward", twin)


def initial_state_is_that_of_the_last_position(monkeypatch):
    """The last column of the batch, which is padding where a mate is longer."""
    real = modules.SharedAttention.prepare

    def twin(self, annotations, padding):
        last = real(self, annotations.flip(1), padding)
        return real(self, annotations, padding)._replace(initial=last.initial)

    monkeypatch.setattr(modules.SharedAttention, "prepare", twin)


def mates_are_mixed(monkeypatch):
    real = modules.Encoder.encode

    def twin(self, tokens, literal=False):
        annotations, padding = real(self, tokens, literal)
        return annotations - annotations.mean(dim=0, keepdim=True), padding

    monkeypatch.setattr(modules.Encoder, "encode", twin)


def next_token_is_read(monkeypatch):
    real = modules.Decoder.embed

    def twin(self, prev_tokens, first):
        vectors = real(self, prev_tokens, first)
        return torch.cat([vectors[:, 1:], vectors[:, :1]], dim=1)

    monkeypatch.setattr(modules.Decoder, "embed", twin)


def every_step_starts_anew(monkeypatch):
    real = modules.attentive_gru

    def twin(state, query_inputs, gate_inputs, **rest):
        steps = zip(query_inputs.split(1), gate_inputs.split(1))
        found = [real(state, query_inputs=q, gate_inputs=g, **rest) for q, g in steps]
        return tuple(torch.cat(parts) for parts in zip(*found))

    monkeypatch.setattr(modules, "attentive_gru", twin)


def encoder_reads_forwards_only(monkeypatch):
    real = recurrent.BidirectionalGRU.forward

    def twin(self, inputs, padding, literal=False):
        ahead, back = real(self, inputs, padding, literal).chunk(2, dim=2)
        return torch.cat([ahead, torch.zeros_like(back)], dim=2)

    monkeypatch.setattr(recurrent.BidirectionalGRU, "forward", twin)


def first_vector_is_the_end_symbol_in_training(monkeypatch):
    """y_0 is zero in decoding, where one token comes at a time, and not in teacher forcing."""
    real = modules.Decoder.embed

    def twin(self, prev_tokens, first):
        return real(self, prev_tokens, first and prev_tokens.size(1) == 1)

    monkeypatch.setattr(modules.Decoder, "embed", twin)


def every_vector_is_the_first_in_decoding(monkeypatch):
    real = modules.Decoder.embed

    def twin(self, prev_tokens, first):
        return real(self, prev_tokens, first or prev_tokens.size(1) == 1)

    monkeypatch.setattr(modules.Decoder, "embed", twin)


def state_is_not_kept(monkeypatch):
    real = model_file.decode

    def twin(*parts):
        if parts[4]:
            parts[4].clear()
        return real(*parts)

    monkeypatch.setattr(model_file, "decode", twin)


def state_stays_on_the_model(monkeypatch):
    real, kept = model_file.decode, {}

    def twin(decoder, attention, encoded, prev_tokens, cache):
        return real(decoder, attention, encoded, prev_tokens, None if cache is None else kept)

    monkeypatch.setattr(model_file, "decode", twin)


def cache_is_not_reordered(monkeypatch):
    def twin(cache, new_order):
        for name in [name for name in cache if "context_" not in name]:
            cache[name] = cache[name][: new_order.numel()]
        return cache

    monkeypatch.setattr(direction_file, "reorder_cache", twin)


def sources_are_dropped_from_the_front(monkeypatch):
    """The states follow their hypotheses, but of the sources the wrong ones are kept."""
    real = direction_file.reorder_cache

    def twin(cache, new_order):
        sources = {name: cache[name] for name in cache if "context_" in name}
        real(cache, new_order)
        for name, whole in sources.items():
            cache[name] = whole[-cache[name].size(0) :]

    monkeypatch.setattr(direction_file, "reorder_cache", twin)


BROKEN = [
    (padding, attention_is_not_masked, "padding of sentence 1: differs"),
    (padding, backward_gru_starts_in_the_padding, "padding of sentence 1: differs"),
    (padding, backward_states_are_not_turned_back, "padding of sentence 1: differs"),
    (padding, initial_state_is_that_of_the_last_position, "padding of sentence 1: differs"),
    (batch_mates, mates_are_mixed, "batch mates changed: differs"),
    (causality, next_token_is_read, "before changed input 1: differs"),
    (causality, every_step_starts_anew, "does not reach every later score"),
    (sees_everything, encoder_reads_forwards_only, "does not reach every state"),
    (stepwise, first_vector_is_the_end_symbol_in_training, "first pass, step 0: differs"),
    (stepwise, every_vector_is_the_first_in_decoding, "first pass, step 1: differs"),
    (stepwise, state_is_not_kept, "first pass, step 1: differs"),
    (stepwise, state_stays_on_the_model, "second pass, step 0: differs"),
    (beam_reorder, cache_is_not_reordered, "after re-ordering: differs"),
    (beam_reorder, sources_are_dropped_from_the_front, "after re-ordering: differs"),
]


@pytest.mark.parametrize(
    "check, twin, message", BROKEN, ids=[twin.__name__ for _, twin, _ in BROKEN]
)
def test_broken_twin_fails(model, monkeypatch, check, twin, message):
    twin(monkeypatch)
    with pytest.raises(AssertionError, match=message):
        check(model.direction("xx-yy"))


def test_save_and_load_fails_where_a_part_is_not_stored(model):
    direction = model.direction("xx-yy")
    attention = direction.decoder.module.attention
    energy = attention.energy.detach().clone()
    del attention.energy
    attention.energy = energy

    def build():
        fresh = randomise(copy.deepcopy(direction), seed=1)
        fresh.decoder.module.attention.energy = -energy
        return fresh

    with pytest.raises(AssertionError, match="after save and load"):
        check_save_load(direction, build, *full(direction), PAD)
