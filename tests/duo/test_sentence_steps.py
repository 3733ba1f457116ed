"""The steps of a search for one sentence against a decoder that reads whole hypotheses."""

import pytest
import torch
from torch import nn

from fairseq_ext.duo.transformer.layer import DuoSize
from fairseq_ext.duo.transformer.model import DuoTargetSide
from fairseq_ext.duo.transformer.modules import DuoDecoder, DuoEmbedding, DuoEncoder
from fairseq_ext.streams.direction import SourceSide

WORDS, ROWS, STEPS, PAD, END, WIDTH = 30, 4, 5, 1, 2, 12
SIZES = {
    "all of the paper": {},
    "keys and values apart": {"share_kv": False},
    "no crossing": {"duo_norm": "off"},
    "no fusion": {"fusion": False},
    "one stream": {"streams": 1, "share_kv": False, "duo_norm": "off", "fusion": False},
}


def sides(widths=(WIDTH, 8), **options):
    """(source side, target side), all of whose parameters are random."""
    torch.manual_seed(0)
    size = DuoSize(WIDTH, 20, 3, 2, **options)
    embedding = DuoEmbedding(
        [nn.Embedding(WORDS, width, PAD) for width in widths[: size.streams]], WIDTH
    )
    encoder, decoder = DuoEncoder(size, embedding), DuoDecoder(size, embedding)
    with torch.no_grad():
        for parameter in {*encoder.parameters(), *decoder.parameters()}:
            parameter.add_(0.3 * torch.randn_like(parameter))
    return SourceSide(encoder, None, 100).eval(), DuoTargetSide(decoder, None, 100).eval()


@pytest.mark.parametrize("name", SIZES)
@torch.no_grad()
def test_steps_are_those_of_the_decoder(name):
    source_side, side = sides(**SIZES[name])
    encoder_out = source_side(torch.randint(4, WORDS, (1, 6)))
    steps = side.sentence_steps(encoder_out, ROWS, STEPS)
    tokens = torch.full((ROWS, 1), END)
    for _ in range(STEPS):
        logits, attention = steps(tokens[:, -1])
        expected, more = side(tokens, encoder_out)
        torch.testing.assert_close(logits, expected[:, -1], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(attention, more["attn"][0][:, -1], atol=1e-5, rtol=1e-4)
        order = torch.randint(ROWS, (ROWS,))
        steps.reorder(order)
        tokens = torch.cat([tokens[order], torch.randint(4, WORDS, (ROWS, 1))], dim=1)


class OtherDecoder(DuoDecoder):
    """It may compute something else."""


def test_other_decoders_have_none():
    source_side, side = sides()
    encoder_out = source_side(torch.randint(4, WORDS, (1, 6)))
    assert side.sentence_steps(encoder_out, ROWS, STEPS) is not None
    side.module.layers[0].make_generation_fast_(retain_dropout=True)
    assert side.sentence_steps(encoder_out, ROWS, STEPS) is None
    source_side, side = sides()
    side.module.__class__ = OtherDecoder
    assert side.sentence_steps(encoder_out, ROWS, STEPS) is None
