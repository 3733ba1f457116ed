"""Programs for fairseq 0.10 that build a recognizer of wav2vec 2.0 from a Namespace."""

from argparse import Namespace

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models.wav2vec import wav2vec2
from fairseq.models.wav2vec.wav2vec2_asr import Wav2VecEncoder, base_architecture

TINY = {
    **{"encoder_layers": 1, "encoder_embed_dim": 16, "encoder_ffn_embed_dim": 16},
    **{"encoder_attention_heads": 2, "conv_feature_layers": "[(8, 10, 5), (8, 4, 4)]"},
    **{"conv_pos": 4, "conv_pos_groups": 2, "latent_vars": 4, "final_dim": 8},
}


def pretrained(**options):
    """The options of the model to be fine-tuned, as a checkpoint of 0.10 has them."""
    args = Namespace(arch="wav2vec2", task="audio_pretraining", data="", normalize=False, **options)
    wav2vec2.base_architecture(args)
    return args


@pytest.mark.parametrize("argument", ["by place", "tgt_dict", "output_size"])
def test_a_recognizer_has_the_size_of_its_dictionary(argument):
    words = Dictionary()
    words.add_symbol("a")
    args = Namespace(apply_mask=True, dropout=0.3, w2v_args=pretrained(**TINY), data="")
    base_architecture(args)
    assert (args.dropout, args.mask_channel_prob, args.final_dropout) == (0.3, 0.5, 0)
    last = {"by place": (words,)}.get(argument, ())
    named = {"tgt_dict": {"tgt_dict": words}, "output_size": {"output_size": len(words)}}
    encoder = Wav2VecEncoder(args, *last, **named.get(argument, {})).eval()
    source, padding = torch.randn(2, 400), torch.zeros(2, 400, dtype=torch.bool)
    scores = encoder(source, padding)["encoder_out"]
    assert scores.shape[1:] == (2, len(words))
    assert encoder.w2v_model.cfg.dropout == 0.1 and encoder.proj.out_features == len(words)


def test_defaults_of_0_10():
    args = pretrained(dropout=0.3)
    assert (args.dropout, args.encoder_layers, args.mask_prob) == (0.3, 12, 0.65)
    assert eval(args.conv_feature_layers)[1] == (512, 8, 4)
    assert args.extractor_mode == "default" and not hasattr(args, "_name")
    assert not hasattr(pretrained(), "w2v_path")
