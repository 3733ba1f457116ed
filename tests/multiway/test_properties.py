"""The shared properties of a direction, and twins of the real modules that must violate them."""

from functools import partial

import pytest
import torch
from streams import directions
from streams.directions import (
    CHECKS,
    batch_mates,
    beam_reorder,
    causality,
    padding,
    sees_everything,
    stepwise,
)

from fairseq_ext.common import recurrent
from fairseq_ext.multiway import model as model_file
from fairseq_ext.multiway import modules
from fairseq_ext.streams import direction as direction_file

DIRECTIONS = ["xx-yy", "zz-xx", "yy-zz", "yy+zz-xx"]  # the last but one is not trained for


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("pair", DIRECTIONS)
def test_direction(model, pair, check):
    check(model.direction(pair))


@pytest.mark.parametrize("pair", DIRECTIONS[:2])
def test_encoder_sees_the_whole_sentence(model, pair):
    sees_everything(model.direction(pair))


@pytest.mark.parametrize("lengths", [[4], [1, 1], [2, 6, 3, 1]], ids=str)
@pytest.mark.parametrize("beams", [1, 4])
def test_beams_of_other_sizes(model, lengths, beams):
    beam_reorder(model.direction("xx-yy"), lengths, beams)


def test_save_and_load(model):
    directions.save_and_load(model.direction("xx-yy"))


def test_a_part_that_is_not_stored_is_noticed(model):
    directions.assert_unstored_energy_is_noticed(
        model.direction("xx-yy"), lambda direction: direction.decoder.module.attention
    )


def attention_is_not_masked(monkeypatch):
    real = modules.attentive_gru

    def twin(*state, padding, **rest):
        return real(*state, padding=torch.zeros_like(padding), **rest)

    monkeypatch.setattr(modules, "attentive_gru", twin)


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
    real = modules.MultiwayEncoder.encode

    def twin(self, tokens, literal=False):
        annotations, padding = real(self, tokens, literal)
        return annotations - annotations.mean(dim=0, keepdim=True), padding

    monkeypatch.setattr(modules.MultiwayEncoder, "encode", twin)


def every_step_starts_anew(monkeypatch):
    real = modules.attentive_gru

    def twin(state, query_inputs, gate_inputs, **rest):
        steps = zip(query_inputs.split(1), gate_inputs.split(1))
        outputs = [real(state, query_inputs=q, gate_inputs=g, **rest) for q, g in steps]
        return tuple(torch.cat(parts) for parts in zip(*outputs))

    monkeypatch.setattr(modules, "attentive_gru", twin)


def encoder_reads_forwards_only(monkeypatch):
    real = recurrent.BidirectionalGRU.forward

    def twin(self, inputs, padding, literal=False):
        ahead, back = real(self, inputs, padding, literal).chunk(2, dim=2)
        return torch.cat([ahead, torch.zeros_like(back)], dim=2)

    monkeypatch.setattr(recurrent.BidirectionalGRU, "forward", twin)


def first_vector_is_the_end_symbol_in_training(monkeypatch):
    """y_0 is zero in decoding, where one token comes at a time, and not in teacher forcing."""
    real = modules.MultiwayDecoder.embed

    def twin(self, prev_tokens, first):
        return real(self, prev_tokens, first and prev_tokens.size(1) == 1)

    monkeypatch.setattr(modules.MultiwayDecoder, "embed", twin)


def every_vector_is_the_first_in_decoding(monkeypatch):
    real = modules.MultiwayDecoder.embed

    def twin(self, prev_tokens, first):
        return real(self, prev_tokens, first or prev_tokens.size(1) == 1)

    monkeypatch.setattr(modules.MultiwayDecoder, "embed", twin)


def state_is_not_kept(monkeypatch):
    real = model_file.decode

    def twin(*parts):
        if parts[4]:
            parts[4].clear()
        return real(*parts)

    monkeypatch.setattr(model_file, "decode", twin)


def cache_is_not_reordered(monkeypatch):
    def twin(cache, new_order):
        for name in [name for name in cache if "context_" not in name]:
            cache[name] = cache[name][: new_order.numel()]
        return cache

    monkeypatch.setattr(direction_file, "reorder_cache", twin)


BROKEN = [
    (padding, attention_is_not_masked, "padding of sentence 0: differs"),
    (
        padding,
        partial(directions.backward_reading_starts_in_the_padding, module=recurrent),
        "padding of sentence 0: differs",
    ),
    (padding, backward_states_are_not_turned_back, "padding of sentence 0: differs"),
    (padding, initial_state_is_that_of_the_last_position, "padding of sentence 0: differs"),
    (batch_mates, mates_are_mixed, "batch mates changed: differs"),
    (
        causality,
        partial(directions.next_token_is_read, decoder=modules.MultiwayDecoder),
        "before changed input 1: differs",
    ),
    (causality, every_step_starts_anew, "does not reach every later score"),
    (sees_everything, encoder_reads_forwards_only, "does not reach every state"),
    (stepwise, first_vector_is_the_end_symbol_in_training, "first pass, step 0: differs"),
    (stepwise, every_vector_is_the_first_in_decoding, "first pass, step 1: differs"),
    (stepwise, state_is_not_kept, "first pass, step 1: differs"),
    (
        stepwise,
        partial(directions.state_stays_on_the_model, module=model_file),
        "second pass, step 0: differs",
    ),
    (beam_reorder, cache_is_not_reordered, "after re-ordering: differs"),
    (beam_reorder, directions.sources_are_dropped_from_the_front, "after re-ordering: differs"),
]


@pytest.mark.parametrize("check, twin, message", **directions.each_with_name(BROKEN))
def test_broken_twin_fails(model, monkeypatch, check, twin, message):
    directions.assert_broken(model.direction("xx-yy"), monkeypatch, check, twin, message)
