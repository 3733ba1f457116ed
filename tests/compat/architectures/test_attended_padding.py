"""A sentence has the same translation alone and in a batch with longer ones."""

from argparse import Namespace
from types import SimpleNamespace

import pytest
import torch
from common.words import dictionary_with
from fairseq.models import fconv_self_att


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("encoder_attention", ["False", "True"])
def test_sources_of_convolutions_with_attention(heads, encoder_attention):
    words = dictionary_with(*(f"word{number}" for number in range(12)))
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    args = Namespace(encoder_layers="[(8, 3)] * 2", decoder_layers="[(8, 3)] * 2")
    args.encoder_embed_dim = args.decoder_embed_dim = args.decoder_out_embed_dim = 8
    args.max_source_positions = args.max_target_positions = 20
    args.multihead_attention_nheads = args.encoder_attention_nheads = heads
    args.encoder_attention = encoder_attention
    fconv_self_att.base_architecture(args)
    model = fconv_self_att.FConvModelSelfAtt.build_model(args, task).double().eval()
    sources = torch.tensor([[5, 6, 7, 8, 2], [1, 1, 9, 4, 2]])
    previous = torch.tensor([[2, 5, 6], [2, 7, 8]])
    together, weights = model(sources, torch.tensor([5, 3]), previous)
    alone, _ = model(sources[1:, 2:], torch.tensor([3]), previous[1:])
    torch.testing.assert_close(together[1], alone[0], rtol=0, atol=1e-6)
    assert not weights[1, :, :2].any()
    assert not any(module._forward_pre_hooks for name, module in model.named_modules()
                   if name.endswith("dropout_module"))  # fmt: skip
