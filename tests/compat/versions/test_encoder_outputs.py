"""Outputs of encoders that are read, or made, as fairseq 0.9 and 0.10 did."""

from argparse import Namespace
from typing import Dict, List

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.iterative_refinement_generator import DecoderOut, IterativeRefinementGenerator
from fairseq.models import FairseqDecoder, FairseqEncoderDecoderModel
from fairseq.models.fairseq_encoder import EncoderOut, FairseqEncoder
from fairseq.models.transformer import TransformerEncoder, base_architecture
from fairseq.sequence_generator import EnsembleModel

STATES = torch.arange(6.0).view(3, 2, 1)  # (T, B, D)
PADDING = torch.tensor([[False, False, False], [False, False, True]])


class Encoder(FairseqEncoder):
    """An encoder with the output of today."""

    def forward(self, src_tokens, src_lengths=None):
        return {"encoder_out": [STATES], "encoder_padding_mask": [PADDING], "encoder_states": []}

    def reorder_encoder_out(self, encoder_out, new_order):
        return {"encoder_out": [encoder_out["encoder_out"][0].index_select(1, new_order)]}


def outputs():
    encoder = Encoder(None)
    net_input = {"src_tokens": None, "prev_output_tokens": None}
    return [encoder(None), encoder.forward_torchscript(net_input)]


@pytest.mark.parametrize("output", outputs())
def test_todays_output_has_the_fields_of_before(output):
    assert output.encoder_out is STATES and output["encoder_out"] == [STATES]
    assert output.encoder_padding_mask is PADDING
    assert output.encoder_states is None and output.encoder_embedding is None
    assert output[0] is STATES
    assert output._replace(encoder_out=PADDING)["encoder_out"] == [PADDING]
    with pytest.raises(AttributeError):
        output.encoder_output  # noqa: B018


def test_an_output_in_another_order_has_them():
    model = FairseqEncoderDecoderModel(Encoder(None), FairseqDecoder(None))
    ensemble = EnsembleModel([model])
    (output,) = ensemble.reorder_encoder_out([Encoder(None)(None)], torch.tensor([1, 0]))
    assert output.encoder_out[:, 0, 0].tolist() == [1.0, 3.0, 5.0]


def test_a_search_of_a_plugin_puts_outputs_in_order_itself():
    """TorchScript compiles what does so as it ever was."""
    args = Namespace(encoder_embed_dim=4, encoder_ffn_embed_dim=4, encoder_attention_heads=2)
    args.encoder_layers, args.max_source_positions = 1, 9
    base_architecture(args)
    encoder = TransformerEncoder(args, Dictionary(), torch.nn.Embedding(4, 4, 1)).eval()
    exported = torch.jit.script(Exported(encoder))
    output = encoder(torch.tensor([[3, 2], [0, 2]]), torch.tensor([2, 2]))
    order = torch.tensor([1, 1])
    states = encoder.reorder_encoder_out(output, order)
    assert torch.equal(states.encoder_out, output["encoder_out"][0][:, order])
    assert torch.equal(exported(dict(output), order), states.encoder_out)


class Exported(torch.nn.Module):
    """A module that TorchScript compiles with the encoder."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, output: Dict[str, List[torch.Tensor]], order: torch.Tensor):
        return self.encoder.reorder_encoder_out(output, order)["encoder_out"][0]


def test_other_outputs_stay_as_they_are():
    class Convolutional(FairseqEncoder):
        def forward(self, src_tokens):
            return {"encoder_out": (STATES, STATES)}

    assert type(Convolutional(None)(None)) is dict


def test_a_tuple_of_before_is_read_as_today():
    output = EncoderOut(STATES, None, None, None)  # the four fields of 0.9
    assert output["encoder_out"] == [STATES] and output["encoder_padding_mask"] == []
    assert output["encoder_states"] == output["src_lengths"] == []
    assert output[0] is output.encoder_out is STATES
    assert output._replace(encoder_states=[STATES])["encoder_states"] == [STATES]


def test_outputs_of_a_refinement_have_them():
    def decode(prev_decoder_out, encoder_out, **options):
        seen.append(encoder_out.encoder_out.size(1))
        # as models of plugins may, which sample several outputs of a sentence
        order = torch.arange(seen[-1])
        again = model.encoder.reorder_encoder_out(encoder_out=encoder_out, new_order=order)
        assert again.encoder_out.equal(encoder_out.encoder_out)
        # the second sentence ends at once; the first changes each time
        tokens = prev_decoder_out.output_tokens.clone()
        tokens[0, 1] = 4 + len(seen)
        return prev_decoder_out._replace(output_tokens=tokens, attn=None)

    def begin(encoder_out, src_tokens):
        tokens = torch.tensor([[0, 4, 2], [0, 4, 2]])
        scores = torch.zeros(2, 3)
        return DecoderOut(tokens, scores, None, 0, 0, None)

    seen = []
    model = FairseqEncoderDecoderModel(Encoder(None), FairseqDecoder(None))
    model.forward_encoder = lambda given: model.encoder(*given)
    model.initialize_output_tokens, model.forward_decoder = begin, decode
    sample = {"net_input": {"src_tokens": torch.full((2, 3), 4), "src_lengths": torch.ones(2)}}
    words = Dictionary()
    IterativeRefinementGenerator(words, max_iter=3).generate([model], sample)
    assert seen == [2, 1, 1, 1]
    assert "reorder_encoder_out" not in vars(model.encoder)
