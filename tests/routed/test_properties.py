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

from fairseq_ext.routed import encoder_decoder, modules
from fairseq_ext.routed import model as model_file
from fairseq_ext.routed import routed_gru as loops
from fairseq_ext.streams import direction as direction_file

PAIRS = ["xx-yy", "zz-yy"]


@pytest.mark.parametrize("check", [*CHECKS, sees_everything], ids=lambda check: check.__name__)
@pytest.mark.parametrize("pair", PAIRS)
def test_direction(model, pair, check):
    check(model.direction(pair))


@pytest.mark.parametrize("lengths", [[4], [1, 1], [2, 6, 3, 1]], ids=str)
@pytest.mark.parametrize("beams", [1, 4])
def test_beams_of_other_sizes(routed, lengths, beams):
    beam_reorder(routed.direction("xx-yy"), lengths, beams)


def test_save_and_load(model):
    directions.save_and_load(model.direction("xx-yy"))


def test_a_part_that_is_not_stored_is_noticed(routed):
    directions.assert_unstored_energy_is_noticed(
        routed.direction("xx-yy"), lambda direction: direction.decoder.module.decoder
    )


def attention_is_not_masked(monkeypatch):
    real = encoder_decoder.attentive_stack

    def twin(projected, keys, values, pads, *rest):
        return real(projected, keys, values, torch.zeros_like(pads), *rest)

    monkeypatch.setattr(encoder_decoder, "attentive_stack", twin)


def mean_is_over_the_padding(monkeypatch):
    real = encoder_decoder.Decoder.prepare

    def twin(self, annotations, pads, task):
        start = real(self, annotations, torch.zeros_like(pads), task).initial
        return real(self, annotations, pads, task)._replace(initial=start)

    monkeypatch.setattr(encoder_decoder.Decoder, "prepare", twin)


def router_mixes_the_batch(monkeypatch):
    """tau is one for the whole batch, as if it were a parameter of the step."""
    real = loops.LayerPass._route

    def twin(self, t):
        real(self, t)
        self.scale[: self.routed, t] = self.scale[: self.routed, t].mean(dim=1, keepdim=True)

    monkeypatch.setattr(loops.LayerPass, "_route", twin)


def every_step_starts_anew(monkeypatch):
    real = encoder_decoder.attentive_stack

    def twin(projected, *rest):
        top, weights, tau = zip(*(real(row, *rest) for row in projected.split(1)))
        return torch.cat(top), torch.cat(weights), [torch.cat(row) for row in zip(*tau)]

    monkeypatch.setattr(encoder_decoder, "attentive_stack", twin)


def encoder_reads_forwards_only(monkeypatch):
    real = modules.BidirectionalUnit.forward

    def twin(self, *inputs, **named):
        outputs, *tau = real(self, *inputs, **named)
        ahead, back = outputs.chunk(2, dim=2)
        return (torch.cat([ahead, torch.zeros_like(back)], dim=2), *tau)

    monkeypatch.setattr(modules.BidirectionalUnit, "forward", twin)


def blocks_start_from_zero_in_teacher_forcing(monkeypatch):
    real = encoder_decoder.attentive_stack

    def twin(*inputs):
        layers = [layer._replace(state=torch.zeros_like(layer.state)) for layer in inputs[-1]]
        return real(*inputs[:-1], layers)

    monkeypatch.setattr(encoder_decoder, "attentive_stack", twin)


def blocks_are_not_reordered(monkeypatch):
    """The unit's state follows its hypothesis, the states of its blocks do not."""
    real = direction_file.reorder_cache

    def twin(cache, new_order):
        blocks = {name: tensor for name, tensor in cache.items() if name.startswith("blocks")}
        real(cache, new_order)
        for name, tensor in blocks.items():
            cache[name] = tensor[: new_order.numel()]

    monkeypatch.setattr(direction_file, "reorder_cache", twin)


BROKEN = [
    (padding, attention_is_not_masked, r"padding of sentence \d: differs"),
    (padding, mean_is_over_the_padding, r"padding of sentence \d: differs"),
    (
        padding,
        partial(directions.backward_reading_starts_in_the_padding, module=modules),
        r"padding of sentence \d: differs",
    ),
    (batch_mates, router_mixes_the_batch, "batch mates changed: differs"),
    (
        causality,
        partial(directions.next_token_is_read, decoder=encoder_decoder.Decoder),
        "before changed input 1: differs",
    ),
    (causality, every_step_starts_anew, "does not reach every later score"),
    (sees_everything, encoder_reads_forwards_only, "does not reach every state"),
    (stepwise, blocks_start_from_zero_in_teacher_forcing, "first pass, step 0: differs"),
    (
        stepwise,
        partial(directions.state_stays_on_the_model, module=model_file),
        "second pass, step 0: differs",
    ),
    (beam_reorder, blocks_are_not_reordered, "after re-ordering: differs"),
    (beam_reorder, directions.sources_are_dropped_from_the_front, "after re-ordering: differs"),
]


@pytest.mark.parametrize("check, twin, message", **directions.each_with_name(BROKEN))
def test_broken_twin_fails(routed, monkeypatch, check, twin, message):
    directions.assert_broken(routed.direction("xx-yy"), monkeypatch, check, twin, message)
