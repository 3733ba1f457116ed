"""The shared properties of a direction, and twins of the real modules that must violate them."""

import copy

import pytest
import torch
from routed.conftest import WORDS, randomise
from routed.support import END, PAD

from fairseq_ext.common import routed_gru as loops
from fairseq_ext.routed import model as model_file
from fairseq_ext.routed import modules, sequence
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
PAIRS = ["xx-yy", "zz-yy"]


def sentences(lengths, seed):
    return random_sentences(lengths, FEWEST, END, seed=seed)


def padding(direction, left=True):
    sources, targets = sentences([5, 1, 3], 1), sentences([4, 2, 6], 2)
    check_padding_invariance(direction, sources, targets, PAD, left_pad_source=left)


def right_padding(direction):
    padding(direction, left=False)


def batch_mates(direction):
    sources, targets = sentences([5, 1, 3], 1), sentences([4, 2, 6], 2)
    check_batch_mate_invariance(direction, sources, targets, PAD, words=FEWEST)


def full():
    """Source and decoder inputs of two sentences without padding."""
    return collate(sentences([4, 4], 3), PAD), collate(shift(sentences([5, 5], 4)), PAD)


def causality(direction):
    check_causality(direction, *full(), PAD, words=FEWEST)


def sees_everything(direction):
    check_sees_everything(
        direction, full()[0], PAD, words=FEWEST, states=lambda out: out["encoded"][0][0]
    )


def stepwise(direction):
    source = collate(sentences([4, 2], 3), PAD, left=True)
    check_stepwise(direction, source, full()[1], PAD)


def beam_reorder(direction, lengths=(5, 2, 3), beams=3):
    source = collate(sentences(lengths, 5), PAD, left=True)
    check_beam_reorder(direction, source, END, PAD, words=FEWEST, beams=beams, steps=6)


CHECKS = [padding, right_padding, batch_mates, causality, sees_everything, stepwise, beam_reorder]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("pair", PAIRS)
def test_direction(model, pair, check):
    check(model.direction(pair))


@pytest.mark.parametrize("lengths", [[4], [1, 1], [2, 6, 3, 1]], ids=str)
@pytest.mark.parametrize("beams", [1, 4])
def test_beams_of_other_sizes(routed, lengths, beams):
    beam_reorder(routed.direction("xx-yy"), lengths, beams)


def test_save_and_load(model):
    direction = model.direction("xx-yy")

    def build():
        return randomise(copy.deepcopy(direction), seed=1)

    check_save_load(direction, build, *full(), PAD)


def attention_is_not_masked(monkeypatch):
    real = sequence.attentive_stack

    def twin(projected, keys, values, pads, *rest):
        return real(projected, keys, values, torch.zeros_like(pads), *rest)

    monkeypatch.setattr(sequence, "attentive_stack", twin)


def mean_is_over_the_padding(monkeypatch):
    real = sequence.Decoder.prepare

    def twin(self, annotations, pads, task):
        start = real(self, annotations, torch.zeros_like(pads), task).initial
        return real(self, annotations, pads, task)._replace(initial=start)

    monkeypatch.setattr(sequence.Decoder, "prepare", twin)


def backward_unit_starts_in_the_padding(monkeypatch):
    def whole_row(pads):
        return torch.arange(pads.size(1) - 1, -1, -1).expand(pads.shape)

    monkeypatch.setattr(modules, "reversal", whole_row)


def router_mixes_the_batch(monkeypatch):
    """tau is one for the whole batch, as if it were a parameter of the step."""
    real = loops.Layer._route

    def twin(self, t):
        real(self, t)
        self.scale[: self.routed, t] = self.scale[: self.routed, t].mean(dim=1, keepdim=True)

    monkeypatch.setattr(loops.Layer, "_route", twin)


def next_token_is_read(monkeypatch):
    real = sequence.Decoder.embed

    def twin(self, target, prev_tokens):
        vectors = real(self, target, prev_tokens)
        return torch.cat([vectors[:, 1:], vectors[:, :1]], dim=1)

    monkeypatch.setattr(sequence.Decoder, "embed", twin)


def every_step_starts_anew(monkeypatch):
    real = sequence.attentive_stack

    def twin(projected, *rest):
        top, weights, tau = zip(*(real(one, *rest) for one in projected.split(1)))
        return torch.cat(top), torch.cat(weights), [torch.cat(one) for one in zip(*tau)]

    monkeypatch.setattr(sequence, "attentive_stack", twin)


def encoder_reads_forwards_only(monkeypatch):
    real = modules.BidirectionalUnit.forward

    def twin(self, *given, **named):
        outputs, *tau = real(self, *given, **named)
        ahead, back = outputs.chunk(2, dim=2)
        return (torch.cat([ahead, torch.zeros_like(back)], dim=2), *tau)

    monkeypatch.setattr(modules.BidirectionalUnit, "forward", twin)


def blocks_start_from_zero_in_teacher_forcing(monkeypatch):
    real = sequence.attentive_stack

    def twin(*given):
        layers = [one._replace(state=torch.zeros_like(one.state)) for one in given[-1]]
        return real(*given[:-1], layers)

    monkeypatch.setattr(sequence, "attentive_stack", twin)


def state_stays_on_the_model(monkeypatch):
    real, kept = model_file.decode, {}

    def twin(decoder, target, encoded, prev_tokens, task, cache):
        return real(decoder, target, encoded, prev_tokens, task, None if cache is None else kept)

    monkeypatch.setattr(model_file, "decode", twin)


def blocks_are_not_reordered(monkeypatch):
    """The unit's state follows its hypothesis, the states of its blocks do not."""
    real = direction_file.reorder_cache

    def twin(cache, new_order):
        kept = {name: one for name, one in cache.items() if name.startswith("blocks")}
        real(cache, new_order)
        for name, one in kept.items():
            cache[name] = one[: new_order.numel()]

    monkeypatch.setattr(direction_file, "reorder_cache", twin)


def sources_are_dropped_from_the_front(monkeypatch):
    real = direction_file.reorder_cache

    def twin(cache, new_order):
        sources = {name: cache[name] for name in cache if "context_" in name}
        real(cache, new_order)
        for name, whole in sources.items():
            cache[name] = whole[-cache[name].size(0) :]

    monkeypatch.setattr(direction_file, "reorder_cache", twin)


BROKEN = [
    (padding, attention_is_not_masked, r"padding of sentence \d: differs"),
    (padding, mean_is_over_the_padding, r"padding of sentence \d: differs"),
    (padding, backward_unit_starts_in_the_padding, r"padding of sentence \d: differs"),
    (batch_mates, router_mixes_the_batch, "batch mates changed: differs"),
    (causality, next_token_is_read, "before changed input 1: differs"),
    (causality, every_step_starts_anew, "does not reach every later score"),
    (sees_everything, encoder_reads_forwards_only, "does not reach every state"),
    (stepwise, blocks_start_from_zero_in_teacher_forcing, "first pass, step 0: differs"),
    (stepwise, state_stays_on_the_model, "second pass, step 0: differs"),
    (beam_reorder, blocks_are_not_reordered, "after re-ordering: differs"),
    (beam_reorder, sources_are_dropped_from_the_front, "after re-ordering: differs"),
]


@pytest.mark.parametrize(
    "check, twin, message", BROKEN, ids=[twin.__name__ for _, twin, _ in BROKEN]
)
def test_broken_twin_fails(routed, monkeypatch, check, twin, message):
    twin(monkeypatch)
    with pytest.raises(AssertionError, match=message):
        check(routed.direction("xx-yy"))


def test_a_part_that_is_not_stored_is_noticed(routed):
    direction = routed.direction("xx-yy")
    decoder = direction.decoder.module.decoder
    energy = decoder.energy.detach().clone()
    del decoder.energy
    decoder.energy = energy

    def build():
        fresh = randomise(copy.deepcopy(direction), seed=1)
        fresh.decoder.module.decoder.energy = -energy
        return fresh

    with pytest.raises(AssertionError, match="after save and load"):
        check_save_load(direction, build, *full(), PAD)
