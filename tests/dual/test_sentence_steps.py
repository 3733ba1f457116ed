"""The steps of a search for one sentence against the decoding role of a component."""

import pytest
import torch
from torch import nn

from fairseq_ext.dual.transformer.modules import Component, ComponentSize
from fairseq_ext.streams.direction import SourceSide, TargetSide

WORDS, ROWS, STEPS, PAD, END = 30, 4, 5, 1, 2


def component(normalize_before=False, separate_softmax=False, dropout=0.0):
    torch.manual_seed(0)
    size = ComponentSize(
        embed_dim=12,
        ffn_dim=20,
        heads=3,
        layers=2,
        dropout=dropout,
        normalize_before=normalize_before,
    )
    module = Component(size, WORDS, PAD, separate_softmax=separate_softmax).eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module


def source():
    """What a decoder reads of one sentence."""
    torch.manual_seed(1)
    tokens = torch.randint(4, WORDS, (1, 6))
    return SourceSide(component(), None, 100)(tokens)


@pytest.mark.parametrize("need_attention", [False, True])
@pytest.mark.parametrize("normalize_before", [False, True])
@pytest.mark.parametrize("separate_softmax", [False, True])
@torch.no_grad()
def test_steps_are_those_of_the_decoding_role(normalize_before, separate_softmax, need_attention):
    module, encoder_out = component(normalize_before, separate_softmax), source()
    side = TargetSide(module, None, 100, need_attention)
    steps = side.sentence_steps(encoder_out, ROWS, STEPS)
    tokens = torch.full((ROWS, 1), END)
    for _ in range(STEPS):
        logits, attention = steps(tokens[:, -1])
        states, expected = module.decode(
            tokens, *encoder_out["encoded"][0], need_weights=need_attention
        )
        torch.testing.assert_close(logits, module.logits(states)[:, -1], atol=1e-5, rtol=1e-5)
        if need_attention:
            torch.testing.assert_close(attention, expected[:, -1], atol=1e-6, rtol=1e-5)
        else:
            assert attention is None
        order = torch.randint(ROWS, (ROWS,))
        steps.reorder(order)
        tokens = torch.cat([tokens[order], torch.randint(4, WORDS, (ROWS, 1))], dim=1)


class OtherComponent(Component):
    """It may compute something else."""


def retained():
    module = component(dropout=0.5)
    module.blocks[1].make_generation_fast_(retain_dropout=True)
    return module


def other():
    module = component()
    module.__class__ = OtherComponent
    return module


def hooked():
    module = component()
    module.blocks[0].register_forward_pre_hook(lambda *_: None)
    return module


@pytest.mark.parametrize(
    "make", [retained, other, hooked, lambda: component().train(), lambda: nn.Linear(1, 1)]
)
def test_other_modules_have_none(make):
    assert TargetSide(make(), None, 100).sentence_steps(source(), ROWS, STEPS) is None


def test_several_sources_and_padding_have_none():
    side, encoder_out = TargetSide(component(), None, 100), source()
    assert side.sentence_steps(encoder_out, ROWS, STEPS) is not None
    (states, padding), *_ = encoder_out["encoded"]
    for encoded in ([(states, padding)] * 2, [(states, ~padding)]):
        assert side.sentence_steps({**encoder_out, "encoded": encoded}, ROWS, STEPS) is None
