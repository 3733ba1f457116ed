"""The attention of fconv: with a beam it was not prepared for, and its weights."""

import argparse
from types import SimpleNamespace

import pytest
import torch
from common.words import dictionary_with
from fairseq.models import fconv_self_att
from fairseq.models.fconv import FConvModel
from fairseq.modules import BeamableMM

SOURCES = torch.tensor([[5, 6, 7, 2], [8, 9, 10, 2], [4, 4, 5, 2], [9, 6, 5, 2]])
PREVIOUS = torch.tensor([[2, 5], [2, 6], [2, 8], [2, 9]])


def built(kind, attention):
    words = dictionary_with(*(f"word{number}" for number in range(12)))
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    args = argparse.Namespace(encoder_layers="[(8, 3)] * 2", decoder_layers="[(8, 3)] * 2")
    args.encoder_embed_dim = args.decoder_embed_dim = args.decoder_out_embed_dim = 8
    args.max_source_positions = args.max_target_positions = 20
    args.decoder_attention = attention
    torch.manual_seed(1)
    if kind is fconv_self_att.FConvModelSelfAtt:
        fconv_self_att.base_architecture(args)
    return kind.build_model(args, task).eval()


@pytest.fixture(scope="module")
def model():
    return built(FConvModel, "True")


@pytest.mark.parametrize("beam", [2, 3, 4])
def test_four_sentences_have_four_sources(model, beam):
    """As translate(beam=1) of four sentences, after the default of five or another --beam."""
    encoded = model.encoder(SOURCES, src_lengths=torch.full((4,), 4))
    expected, _ = model.decoder(PREVIOUS, encoder_out=encoded)
    for attention in model.decoder.attention:
        attention.make_generation_fast_(beamable_mm_beam_size=beam)
        assert isinstance(attention.bmm, BeamableMM)
        attention.eval()
    state = {}
    for step in range(2):
        words = PREVIOUS[:, : step + 1]
        logits, _ = model.decoder(words, encoder_out=encoded, incremental_state=state)
        torch.testing.assert_close(logits[:, -1], expected[:, step])


@pytest.mark.parametrize("attention", ["True", "[True, False]"])
@pytest.mark.parametrize("kind", [FConvModel, fconv_self_att.FConvModelSelfAtt])
def test_weights_add_up_to_one(kind, attention):
    _, weights = built(kind, attention)(SOURCES, torch.full((4,), 4), PREVIOUS)
    torch.testing.assert_close(weights.sum(2), torch.ones(4, 2))
