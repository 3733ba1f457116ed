"""wav2vec 2.0 as programs and plugins for fairseq 0.10 build it, from the options they have."""

from __future__ import annotations

import argparse
import contextlib
import copy
import dataclasses
import functools
from typing import Any, Mapping

from ..patch_registry import PatchedModule, patch

# defaults of 0.10 that are others today, or that name other options
RECOGNITION = {
    **{"dropout": 0, "mask_channel_prob": 0.5, "feature_grad_mult": 0, "layerdrop": 0.0},
    **{"data": None, "normalize": False, "ddp_backend": "legacy_ddp"},
}
SEARCHING = {  # of the decoder
    **{"decoder_embed_dim": 1024, "decoder_ffn_embed_dim": 4096, "decoder_layers": 10},
    **{"decoder_layerdrop": 0, "decoder_attention_heads": 16, "decoder_dropout": 0},
    **{"decoder_attention_dropout": 0, "decoder_activation_dropout": 0},
}
# {type: options of 0.10, which have no defaults: base_architecture sets what is missing}
COMMON_OPTIONS: dict[Any, tuple[str, ...]] = {
    str: ("w2v_path",),
    bool: ("no_pretrained_weights", "apply_mask", "no_mask_overlap", "no_mask_channel_overlap"),
    int: ("mask_length", "mask_channel_length", "freeze_finetune_updates"),
    float: (
        *("dropout_input", "final_dropout", "dropout", "attention_dropout", "activation_dropout"),
        *("mask_prob", "mask_other", "mask_channel_prob", "mask_channel_other"),
        *("feature_grad_mult", "layerdrop"),
    ),
}
MASKS = ("static", "uniform", "normal", "poisson")
DECODER_OPTIONS: dict[Any, tuple[str, ...]] = {
    bool: (
        *("decoder_learned_pos", "decoder_normalize_before", "no_token_positional_embeddings"),
        "share_decoder_input_output_embed",
    ),
    **{
        kind: tuple(name for name in SEARCHING if ("drop" in name) == (kind is float))
        for kind in (int, float)
    },
}
# what the encoder of wav2vec 2.0 did before it had these options
ENCODING: dict[str, Any] = {
    **{"layer_type": "transformer", "checkpoint_activations": False},
    "required_seq_len_multiple": 1,
}
# the same of what Wav2VecEncoder reads
RECOGNIZING: dict[str, Any] = {
    **{"mask_channel_before": False, "checkpoint_activations": False},
    **{"offload_activations": False, "min_params_to_wrap": int(1e8)},
}
PRETRAINING = {
    "conv_feature_layers": "[(512, 10, 5)] + [(512, 8, 4)] + [(512, 4, 2)] * 3 + [(512, 1, 1)]",
}


@patch(
    "fairseq.models.wav2vec.wav2vec2_asr",
    because="fairseq 0.12 made a dataclass of the options of wav2vec 2.0: programs for 0.10 that "
    "import base_architecture of wav2vec2_asr fail with 'cannot import name', and those that give "
    'Wav2VecEncoder a dictionary with "found element of type Dictionary"',
)
def recognizers_are_built_of_namespaces(module: PatchedModule) -> None:
    """Give the module base_architecture, and its encoder a dictionary in place of a size."""
    encoder = module.Wav2VecEncoder
    stock = encoder.__init__

    def base_architecture(args: Any) -> None:
        set_missing(args, RECOGNITION, module.Wav2Vec2CtcConfig)

    @functools.wraps(stock)
    def __init__(self: Any, cfg: Any, output_size: Any = None, tgt_dict: Any = None) -> None:
        size = tgt_dict if output_size is None else output_size
        stock(self, cfg, len(size) if hasattr(size, "__len__") else size)

    encoder.__init__, module.base_architecture = __init__, base_architecture


@patch(
    "fairseq.models.wav2vec.wav2vec2_asr",
    because="fairseq 0.12 ignores the argument tbc of Wav2VecEncoder: programs for 0.10 that ask "
    "for states by sentences, tbc=False, read those of frames as sentences, without a message",
)
def recognizers_give_states_by_sentences(module: PatchedModule) -> None:
    """Let the states of an encoder be (B, T, C) instead of (T, B, C) where tbc is False."""
    encoder = module.Wav2VecEncoder
    stock = encoder.forward

    @functools.wraps(stock)
    def forward(
        self: Any, source: Any, padding_mask: Any, tbc: bool = True, **kwargs: Any
    ) -> dict[str, Any]:
        output: dict[str, Any] = stock(self, source, padding_mask, **kwargs)
        if not tbc:
            output["encoder_out"] = output["encoder_out"].transpose(0, 1)
        return output

    encoder.forward = forward


def add_options(parser: Any, names: Mapping[Any, tuple[str, ...]]) -> None:
    """Add options of these types, whose names are those of a Namespace."""
    for kind, options in names.items():
        for name in options:
            how: dict[str, Any] = {"action": "store_true"} if kind is bool else {"type": kind}
            parser.add_argument(f"--{name.replace('_', '-')}", **how)


@patch(
    "fairseq.models.wav2vec.wav2vec2_asr",
    because="fairseq 0.12: the same of add_common_args, seq2seq_architecture and TransformerModel",
)
def recognizers_with_decoders_are_built_of_namespaces(module: PatchedModule) -> None:
    """Give the module the model with a decoder as 0.10 named it, and its options."""
    translating, open_dict = module.Wav2Vec2Seq2SeqModel, module.open_dict

    def open_options(cfg: Any) -> Any:
        # of the decoder, in a Namespace, to which options can be added anyway
        is_older = isinstance(cfg, argparse.Namespace)
        return contextlib.nullcontext(cfg) if is_older else open_dict(cfg)

    def add_common_args(parser: Any) -> None:
        add_options(parser, COMMON_OPTIONS)
        for name in ("--mask-selection", "--mask-channel-selection"):
            parser.add_argument(name, choices=MASKS)

    def seq2seq_architecture(args: Any) -> None:
        width = getattr(args, "decoder_embed_dim", SEARCHING["decoder_embed_dim"])
        # the encoder projects to this width, which 0.10 therefore did not name
        former = {**RECOGNITION, **SEARCHING, "encoder_embed_dim": width}
        set_missing(args, former, module.Wav2Vec2Seq2SeqConfig)
        module.base_architecture(args)

    class TransformerModel(translating):  # type: ignore[misc, valid-type]
        """wav2vec 2.0 with a decoder, as fairseq 0.10 builds and calls it."""

        def __init__(self, args: Any, encoder: Any, decoder: Any) -> None:
            super().__init__(encoder, decoder)

        @staticmethod
        def add_args(parser: Any) -> None:
            """Add the options of the model."""
            module.add_common_args(parser)
            add_options(parser, DECODER_OPTIONS)

        @classmethod
        def build_model(cls, args: Any, task: Any) -> Any:
            """Return a model of the options and the task."""
            module.seq2seq_architecture(args)
            words = task.target_dictionary
            embedding = module.Embedding(len(words), args.decoder_embed_dim, words.pad())
            decoder = cls.build_decoder(args, words, embedding)
            return cls(args, cls.build_encoder(args), decoder)

    module.add_common_args, module.seq2seq_architecture = add_common_args, seq2seq_architecture
    module.TransformerModel, module.open_dict = TransformerModel, open_options


@patch(
    "fairseq.models.wav2vec.wav2vec2",
    because="fairseq 0.12: the same of base_architecture of fairseq.models.wav2vec.wav2vec2",
)
def pretrained_speech_has_its_defaults(module: PatchedModule) -> None:
    """Give the module base_architecture."""

    def base_architecture(args: Any) -> None:
        set_missing(args, PRETRAINING, module.Wav2Vec2Config)

    module.base_architecture = base_architecture


@patch(
    "fairseq.models.wav2vec.wav2vec2",
    because="fairseq 0.12 reads options of the encoder that 0.10 does not have: models that give "
    'it options of their own, such as AV-HuBERT and VATLM, fail with "Key '
    "'required_seq_len_multiple' not in 'AVHubertConfig'\"",
)
def speech_is_encoded_with_fewer_options(module: PatchedModule) -> None:
    """Let an encoder do without the options that its caller does not have."""
    encoder = module.TransformerEncoder
    stock = encoder.__init__

    @functools.wraps(stock)
    def __init__(self: Any, args: Any) -> None:
        missing = {name: value for name, value in ENCODING.items() if not hasattr(args, name)}
        stock(self, with_options(args, missing) if missing else args)

    encoder.__init__ = __init__


@patch(
    "fairseq.models.wav2vec.wav2vec2_asr",
    because="fairseq 0.12: the same of Wav2VecEncoder, for models of plugins with options of their "
    "own and for options of older checkpoints: \"Key 'mask_channel_before' is not in struct\"",
)
def recognizers_do_with_fewer_options(module: PatchedModule) -> None:
    """Let Wav2VecEncoder do without the options that its caller does not have."""
    encoder = module.Wav2VecEncoder
    stock = encoder.__init__

    @functools.wraps(stock)
    def __init__(self: Any, cfg: Any, *args: Any, **kwargs: Any) -> None:
        missing = {name: value for name, value in RECOGNIZING.items() if not hasattr(cfg, name)}
        extended = with_options(cfg, missing) if missing else cfg
        stock(self, extended, *args, **kwargs)
        if missing:  # what the encoder found out, which makes a checkpoint complete
            cfg.w2v_args = extended.w2v_args

    encoder.__init__ = __init__


def with_options(args: Any, options: Mapping[str, Any]) -> Any:
    """Return a copy of a Namespace, dataclass or object of omegaconf that has further options.

    What the caller has stays as it is: a checkpoint stores it, and would not load with options that
    its dataclass lacks.
    """
    from omegaconf import OmegaConf, open_dict

    extended = copy.copy(args)
    with open_dict(extended) if OmegaConf.is_config(extended) else contextlib.nullcontext():
        for name, value in options.items():
            setattr(extended, name, value)
    return extended


def set_missing(args: Any, former: Mapping[str, Any], dataclass: Any) -> None:
    """Set the options that a Namespace lacks: to the former default, or to that of today."""
    for field in dataclasses.fields(dataclass()):
        name, default = field.name, getattr(dataclass, field.name, None)
        if name != "_name" and default != "???" and not hasattr(args, name):
            setattr(args, name, former.get(name, getattr(default, "value", default)))
