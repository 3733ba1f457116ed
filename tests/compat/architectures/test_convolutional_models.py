"""Options of convolutional models that work, or are refused by name."""

import argparse
from types import SimpleNamespace

import pytest
import torch
from common.words import dictionary_with
from fairseq.criterions.adaptive_loss import AdaptiveLoss
from fairseq.models import lightconv
from fairseq.models.fconv import FConvModel
from fairseq.models.fconv_lm import FConvLanguageModel

from fairseq_ext.compat.user_errors import OptionError

SOURCES = torch.tensor([[5, 6, 7, 8, 9, 2], [1, 1, 9, 4, 6, 2]])
PREVIOUS = torch.tensor([[2, 5, 6], [2, 7, 8]])
WORDS = dictionary_with(*(f"word{number}" for number in range(12)))
TASK = SimpleNamespace(source_dictionary=WORDS, target_dictionary=WORDS)


def light(**options):
    args = argparse.Namespace(encoder_layers=2, decoder_layers=2, encoder_embed_dim=8)
    args.encoder_ffn_embed_dim, args.max_source_positions, args.max_target_positions = 8, 20, 20
    args.encoder_attention_heads = args.decoder_attention_heads = 2
    args.encoder_kernel_size_list = args.decoder_kernel_size_list = [3]
    args.encoder_conv_type = args.decoder_conv_type = "lightweight"
    args.weight_softmax, args.decoder_kernel_size_list = True, [3]
    vars(args).update(options)
    lightconv.base_architecture(args)
    torch.manual_seed(1)
    return lightconv.LightConvModel.build_model(args, TASK).eval()


@pytest.mark.parametrize("kind", ["dynamic", "lightweight"])
def test_even_kernels(kind):
    model = light(encoder_kernel_size_list=[4, 2], encoder_conv_type=kind)
    together = model.encoder(SOURCES)["encoder_out"]
    alone = model.encoder(SOURCES[1:, 2:])["encoder_out"]
    torch.testing.assert_close(together[2:, 1], alone[:, 0])
    convolution, x = model.encoder.layers[0].conv, torch.randn(5, 1, 8)
    output = convolution(x, unfold=False)
    torch.testing.assert_close(convolution(x, unfold=True), output)
    x[4] += 1  # reaches two words before it, and not the third
    assert convolution(x)[:, 0].ne(output[:, 0]).any(1).tolist() == [False, False, True, True, True]


def test_clusters_of_a_softmax():
    model = light(adaptive_softmax_cutoff="4,8")
    target = torch.tensor([[5, 9, 2], [7, 8, 2]])
    inputs = {"src_tokens": SOURCES, "src_lengths": torch.tensor([6, 4])}
    sample = {"net_input": {**inputs, "prev_output_tokens": PREVIOUS}, "target": target}
    sample["ntokens"] = 6
    task = SimpleNamespace(target_dictionary=WORDS)
    loss, _, _ = AdaptiveLoss(task, sentence_avg=False)(model, sample)
    output = model(**inputs, prev_output_tokens=PREVIOUS)
    scores = model.get_normalized_probs(output, log_probs=True, sample=sample)
    torch.testing.assert_close(loss[0], -scores.gather(2, target.unsqueeze(2)).sum())


def test_sides_of_different_width_are_refused():
    with pytest.raises(OptionError, match="--decoder-embed-dim 6 with --encoder-embed-dim 8: "):
        light(decoder_embed_dim=6)


def test_attention_that_does_not_fit_is_refused():
    layers = "[(8, 3)] * 2"
    args = argparse.Namespace(encoder_layers=layers, decoder_layers=layers)
    args.decoder_attention, args.criterion = "[False, False]", "cross_entropy"
    args.max_source_positions = args.max_target_positions = args.tokens_per_sample = 20
    with pytest.raises(OptionError, match="--decoder-attention: no layer attends to the source"):
        FConvModel.build_model(args, TASK)
    args.decoder_attention = "True"
    with pytest.raises(OptionError, match="--decoder-attention: fconv_lm has no source"):
        FConvLanguageModel.build_model(args, TASK)
