"""Attention of fconv and BART: with a beam it was not prepared for, and its weights."""

import argparse
import copy
from types import SimpleNamespace

import pytest
import torch
from common.words import dictionary_with
from fairseq.models import fconv_self_att
from fairseq.models.bart import BARTModel
from fairseq.models.bart.model import bart_base_architecture
from fairseq.models.fconv import FConvModel
from fairseq.modules import BeamableMM
from fairseq.sequence_generator import SequenceGenerator

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


@pytest.fixture
def bart():
    """A tiny BART, and the dictionary of its words."""
    words = dictionary_with(*(f"word{number}" for number in range(12)))
    args = argparse.Namespace(max_source_positions=20, max_target_positions=20)
    for side in ("encoder", "decoder"):
        sizes = {"embed_dim": 8, "ffn_embed_dim": 8, "layers": 1, "attention_heads": 2}
        for name, size in sizes.items():
            setattr(args, f"{side}_{name}", size)
    bart_base_architecture(args)
    torch.manual_seed(1)
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    return BARTModel.build_model(args, task).eval(), words


@pytest.mark.parametrize("beam", [2, 4])
def test_a_forward_pass_after_a_search(bart, beam):
    """As in a training with --eval-bleu, whose search is built before the first update."""
    model, words = bart
    inputs = {"src_tokens": SOURCES, "src_lengths": torch.full((4,), 4)}
    expected, _ = model(**inputs, prev_output_tokens=PREVIOUS)
    generator = SequenceGenerator([model], words, beam_size=beam, max_len_b=5)
    assert torch.equal(model(**inputs, prev_output_tokens=PREVIOUS)[0], expected)
    generator.generate([model], {"net_input": inputs})
    assert torch.equal(model(**inputs, prev_output_tokens=PREVIOUS)[0], expected)
    for row in range(4):
        alone = {name: values[row : row + 1] for name, values in inputs.items()}
        scores, _ = model(**alone, prev_output_tokens=PREVIOUS[row : row + 1])
        assert torch.allclose(scores[0], expected[row], atol=1e-6)


def test_searches_of_several_beams(bart):
    """Each has the hypotheses of a model that has not searched before."""
    model, words = bart
    inputs = {"src_tokens": SOURCES, "src_lengths": torch.full((4,), 4)}

    def search(model, beam):
        generator = SequenceGenerator([model], words, beam_size=beam, max_len_b=5)
        sentences = generator.generate([model], {"net_input": inputs})
        return [[(h["tokens"].tolist(), round(h["score"].item(), 4)) for h in s] for s in sentences]

    fresh = {beam: search(copy.deepcopy(model), beam) for beam in (1, 2, 4)}
    for beam in (4, 1, 2, 4):
        assert search(model, beam) == fresh[beam]


def test_the_beam_is_known_during_a_search(bart):
    """The states of a sentence are computed once for all of its hypotheses."""
    model, words = bart
    generator = SequenceGenerator([model], words, beam_size=4, max_len_b=3)
    rows = set()
    hook = model.decoder.layers[0].encoder_attn.k_proj.register_forward_hook(
        lambda module, inputs, output: rows.add(output.shape[1])
    )
    inputs = {"src_tokens": SOURCES, "src_lengths": torch.full((4,), 4)}
    generator.generate([model], {"net_input": inputs})
    hook.remove()
    assert rows == {4}
