"""wav2vec 2.0 as programs for fairseq 0.10 build it from options in a Namespace."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Mapping

from ..patch_registry import PatchedModule, patch

# defaults of 0.10 that are others today, or that name other options
RECOGNITION = {
    **{"dropout": 0, "mask_channel_prob": 0.5, "feature_grad_mult": 0, "layerdrop": 0.0},
    **{"data": None, "normalize": False, "ddp_backend": "legacy_ddp"},
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
    "fairseq.models.wav2vec.wav2vec2",
    because="fairseq 0.12: the same of base_architecture of fairseq.models.wav2vec.wav2vec2",
)
def pretrained_speech_has_its_defaults(module: PatchedModule) -> None:
    """Give the module base_architecture."""

    def base_architecture(args: Any) -> None:
        set_missing(args, PRETRAINING, module.Wav2Vec2Config)

    module.base_architecture = base_architecture


def set_missing(args: Any, former: Mapping[str, Any], dataclass: Any) -> None:
    """Set the options that a Namespace lacks: to the former default, or to that of today."""
    for field in dataclasses.fields(dataclass()):
        name, default = field.name, getattr(dataclass, field.name, None)
        if name != "_name" and default != "???" and not hasattr(args, name):
            setattr(args, name, former.get(name, getattr(default, "value", default)))
