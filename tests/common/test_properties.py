"""The checks of properties.py accept a right model and reject twins that are wrong in one way."""

import pytest
import torch
from common import toy

from properties import (
    check_batch_mate_invariance,
    check_beam_reorder,
    check_causality,
    check_gradient_everywhere,
    check_no_gradient,
    check_padding_invariance,
    check_save_load,
    check_sees_everything,
    check_stepwise,
    collate,
    random_sentences,
    shift,
)

SOURCES = random_sentences([5, 1, 3], toy.WORDS, toy.END, seed=1)
TARGETS = random_sentences([4, 2, 6], toy.WORDS, toy.END, seed=2)
FULL_SOURCE = collate(random_sentences([4, 4], toy.WORDS, toy.END, seed=3), toy.PAD)
FULL_PREV = collate(shift(random_sentences([5, 5], toy.WORDS, toy.END, seed=4)), toy.PAD)


def padding(model, left_pad_source=True):
    check_padding_invariance(model, SOURCES, TARGETS, toy.PAD, left_pad_source=left_pad_source)


def batch_mates(model):
    check_batch_mate_invariance(model, SOURCES, TARGETS, toy.PAD, words=toy.WORDS)


def causality(model):
    check_causality(model, FULL_SOURCE, FULL_PREV, toy.PAD, words=toy.WORDS)


def sees_everything(model):
    check_sees_everything(model, FULL_SOURCE, toy.PAD, words=toy.WORDS)


def stepwise(model):
    check_stepwise(model, FULL_SOURCE, FULL_PREV, toy.PAD)


def beam_reorder(model):
    check_beam_reorder(model, FULL_SOURCE, toy.END, toy.PAD, words=toy.WORDS)


BROKEN = [
    (padding, {"encoder": toy.PaddingIsRead}, "padding of sentence 0: differs"),
    (padding, {"decoder": toy.PaddingIsInContext}, "padding of sentence 0: differs"),
    (batch_mates, {"encoder": toy.MatesAreMixed}, "batch mates changed: differs"),
    (causality, {"decoder": toy.FutureIsRead}, "before changed input 1: differs"),
    (causality, {"decoder": toy.PastIsForgotten}, "does not reach every later score"),
    (sees_everything, {"encoder": toy.EncoderIsCausal}, "does not reach every state"),
    (stepwise, {"decoder": toy.StateIsIgnored}, "first pass, step 1: differs"),
    (stepwise, {"decoder": toy.StateStaysOnModel}, "second pass, step 0: differs"),
    (beam_reorder, {"decoder": toy.StateIsNotReordered}, "after re-ordering: differs"),
    (beam_reorder, {"encoder": toy.SourceIsNotReordered}, "after re-ordering: differs"),
]
CHECKS = [padding, batch_mates, causality, sees_everything, stepwise, beam_reorder]


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_right_model_passes(check):
    check(toy.build())


def test_right_padded_source_passes():
    padding(toy.build(), left_pad_source=False)


@pytest.mark.parametrize(
    "check, parts, message",
    BROKEN,
    ids=[
        f"{check.__name__}-{part.__name__}" for check, parts, _ in BROKEN for part in parts.values()
    ],
)
def test_broken_twin_fails(check, parts, message):
    with pytest.raises(AssertionError, match=message):
        check(toy.build(**parts))


def test_save_load():
    check_save_load(toy.build(), toy.build, FULL_SOURCE, FULL_PREV, toy.PAD)


def test_save_load_fails_where_a_part_is_not_stored():
    def build():
        return toy.build(decoder=toy.PartIsNotStored)

    with pytest.raises(AssertionError, match="after save and load"):
        check_save_load(build(), build, FULL_SOURCE, FULL_PREV, toy.PAD)


def test_stopped_gradient():
    teacher, student = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    inputs = torch.randn(4, 3)
    stopped = (student(inputs) - teacher(inputs).detach()).pow(2).mean()
    check_no_gradient(stopped, teacher.named_parameters())
    check_gradient_everywhere(stopped, student.named_parameters())
    leaking = (student(inputs) - teacher(inputs)).pow(2).mean()
    with pytest.raises(AssertionError, match="moves"):
        check_no_gradient(leaking, teacher.named_parameters())
    with pytest.raises(AssertionError, match="does not move"):
        check_gradient_everywhere(stopped, teacher.named_parameters())


def test_nothing_to_check_is_an_error():
    with pytest.raises(AssertionError, match="no parameters"):
        check_no_gradient(torch.zeros(()), [])
