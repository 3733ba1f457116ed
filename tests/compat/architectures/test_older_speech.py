"""Programs and plugins for fairseq 0.10 that build parts of wav2vec 2.0."""

import argparse
import dataclasses
from argparse import Namespace
from types import SimpleNamespace

import omegaconf
import pytest
import torch
from common.words import numbered_words
from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.models.wav2vec import wav2vec2, wav2vec2_asr
from fairseq.models.wav2vec.wav2vec2_asr import (
    TransformerModel,
    Wav2VecEncoder,
    base_architecture,
)

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


def test_states_by_sentences():
    args = Namespace(apply_mask=False, w2v_args=pretrained(**TINY), data="")
    base_architecture(args)
    encoder = Wav2VecEncoder(args, 5).eval()
    recordings = torch.randn(2, 400), torch.zeros(2, 400, dtype=torch.bool)
    frames, sentences = (encoder(*recordings, tbc=tbc)["encoder_out"] for tbc in (True, False))
    assert torch.equal(frames, encoder(*recordings)["encoder_out"])
    assert len(sentences) == 2 and torch.equal(sentences, frames.transpose(0, 1))


def test_a_recognizer_with_the_options_of_0_10():
    """Those of a plugin or of an older checkpoint, which holds what the encoder has found out."""
    args = Namespace(apply_mask=False, w2v_args=pretrained(**TINY), data="", w2v_path="")
    base_architecture(args)
    former = {name: value for name, value in vars(args).items() if name != "w2v_args"}
    for name in ("mask_channel_before", "checkpoint_activations"):
        del former[name]
    for name in ("offload_activations", "min_params_to_wrap"):
        del former[name]
    cfg = omegaconf.OmegaConf.create(former, flags={"allow_objects": True})
    cfg.w2v_args = omegaconf.OmegaConf.create(
        {
            "model": {**vars(args.w2v_args), "_name": "wav2vec2"},
            "task": {"normalize": False, "data": ""},
        }
    )
    cfg.w2v_args.task._name = "audio_pretraining"
    omegaconf.OmegaConf.set_struct(cfg, True)
    encoder = Wav2VecEncoder(cfg, 5).eval()
    assert encoder.proj.out_features == 5 and "mask_channel_before" not in cfg
    assert cfg.w2v_args.task.normalize is False


def test_defaults_of_0_10():
    args = pretrained(dropout=0.3)
    assert (args.dropout, args.encoder_layers, args.mask_prob) == (0.3, 12, 0.65)
    assert eval(args.conv_feature_layers)[1] == (512, 8, 4)
    assert args.extractor_mode == "default" and not hasattr(args, "_name")
    assert not hasattr(pretrained(), "w2v_path")


def test_a_recognizer_with_a_decoder():
    """Its options, their defaults and the model, which plugins derive from, as in 0.10."""
    parser = argparse.ArgumentParser(argument_default=argparse.SUPPRESS)
    TransformerModel.add_args(parser)
    words = ["--dropout", "0.3", "--mask-selection", "normal", "--apply-mask"]
    words += ["--decoder-layers", "1", "--decoder-attention-heads", "2", "--freeze-finetune", "4"]
    args = parser.parse_args([*words, "--decoder-embed-dim", "16", "--decoder-learned-pos"])
    assert (args.freeze_finetune_updates, args.dropout, args.apply_mask) == (4, 0.3, True)
    args.w2v_args, args.data, args.decoder_ffn_embed_dim = pretrained(**TINY), "", 8

    class Plugin(TransformerModel):
        def __init__(self, args, encoder, decoder):
            super().__init__(args, encoder, decoder)
            self.layers = args.decoder_layers

    task = SimpleNamespace(target_dictionary=numbered_words(9))
    model = Plugin.build_model(args, task).eval()
    assert type(model) is Plugin and model.layers == 1
    expected = (16, 8, 1, 0.3, 0.0, 0, False)
    assert expected == tuple(
        getattr(args, name)
        for name in (
            *("decoder_embed_dim", "decoder_ffn_embed_dim", "decoder_layers", "dropout"),
            *("mask_other", "decoder_dropout", "share_decoder_input_output_embed"),
        )
    )
    inputs = {"source": torch.randn(2, 400), "padding_mask": torch.zeros(2, 400).bool()}
    scores, _ = model(**inputs, prev_output_tokens=torch.tensor([[2, 4], [2, 5]]))
    assert scores.shape == (2, 2, len(task.target_dictionary))


def test_names_of_0_10_have_its_defaults():
    args = Namespace(decoder_layers=3)
    wav2vec2_asr.seq2seq_architecture(args)
    assert (args.decoder_layers, args.decoder_embed_dim, args.decoder_dropout) == (3, 1024, 0)
    assert (args.mask_channel_prob, args.feature_grad_mult) == (0.5, 0)
    parser = argparse.ArgumentParser()
    wav2vec2_asr.add_common_args(parser)
    assert vars(parser.parse_args([]))["mask_length"] is None


@dataclasses.dataclass
class OptionsOfPlugin(FairseqDataclass):
    """Those of 0.10 that the encoder reads, and one that refers to a task without it."""

    encoder_layers: int = 1
    encoder_embed_dim: int = 16
    encoder_ffn_embed_dim: int = 16
    encoder_attention_heads: int = 2
    activation_fn: str = "gelu"
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    encoder_layerdrop: float = 0.0
    layer_norm_first: bool = True
    conv_pos: int = 4
    conv_pos_groups: int = 2
    input_modality: str = omegaconf.II("task.input_modality")


@pytest.mark.parametrize("kind", ["omegaconf", "dataclass", "Namespace"])
def test_an_encoder_with_the_options_of_0_10(kind):
    """AV-HuBERT: the encoder is that of today, and the options stay as they are."""
    options = OptionsOfPlugin()
    if kind == "omegaconf":
        options = omegaconf.OmegaConf.structured(options)
    elif kind == "Namespace":
        options = Namespace(**vars(options))
    torch.manual_seed(1)
    encoder = wav2vec2.TransformerEncoder(options).eval()
    assert not any(hasattr(options, name) for name in ("layer_type", "required_seq_len_multiple"))
    today = Namespace(**vars(OptionsOfPlugin()), layer_type="transformer")
    today.checkpoint_activations, today.required_seq_len_multiple = False, 2
    torch.manual_seed(1)
    expected = wav2vec2.TransformerEncoder(today).eval()
    states, padding = (
        torch.randn(2, 7, 16),
        torch.arange(7).expand(2, 7) >= torch.tensor([[7], [5]]),
    )
    outputs, _ = encoder(states, padding_mask=padding)
    assert torch.allclose(outputs, expected(states, padding_mask=padding)[0], atol=1e-6)


def test_an_encoder_with_the_options_of_today():
    """They count, and the caller's object is the one that layers are built from."""
    options = Namespace(**vars(OptionsOfPlugin()), layer_type="transformer")
    options.checkpoint_activations, options.required_seq_len_multiple = False, 4
    received = []

    class Encoder(wav2vec2.TransformerEncoder):
        def build_encoder_layer(self, args):
            received.append(args)
            return super().build_encoder_layer(args)

    assert Encoder(options).required_seq_len_multiple == 4 and received[0] is options
