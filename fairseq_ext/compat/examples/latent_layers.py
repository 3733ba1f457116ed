"""The example latent_depth: layers that are selected by learnt logits."""

from __future__ import annotations

import functools
from typing import Any

from ..patch_registry import PatchedModule, patch
from ..user_errors import OptionError
from .user_dirs import modules_of_example

FOLDER = "latent_depth.latent_depth_src"


@patch(
    *modules_of_example(f"{FOLDER}.modules.latent_layers"),
    because="fairseq 0.12.2: the logits of the layers begin as whatever the memory holds, which "
    "may be NaN and differs between runs of one seed",
)
def layers_begin_with_equal_chances(module: PatchedModule) -> None:
    """Begin with logits of zero: each layer is selected with probability 1/2, the uniform prior."""
    import torch

    stock = module.LayerSelect.__init__

    @functools.wraps(stock)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        stock(self, *args, **kwargs)
        torch.nn.init.zeros_(self.layer_logits)

    module.LayerSelect.__init__ = __init__


@patch(
    *modules_of_example(f"{FOLDER}.multilingual_translation_latent_depth"),
    because="fairseq 0.12.2: the README of latent_depth names an --arch without latent layers, "
    "which ends in an AttributeError",
)
def architectures_have_latent_layers(module: PatchedModule) -> None:
    """Refuse an --arch that has no latent layers."""
    task = module.MultilingualTranslationTaskLatentDepth
    stock = task.build_model

    @functools.wraps(stock)
    def build_model(self: Any, args: Any, *more: Any, **kwargs: Any) -> Any:
        model = stock(self, args, *more, **kwargs)
        check_latent_layers(self, model, args.arch)
        return model

    task.build_model = build_model


def check_latent_layers(task: Any, model: Any, arch: str) -> None:
    """Raise OptionError if a side that the task wants to be latent has no latent layers."""
    for side in ("encoder", "decoder"):
        if not getattr(task, f"{side}_latent_layer"):
            continue
        coders = [getattr(part, side) for part in model.models.values()]
        if not all(hasattr(coder, "layer_select") for coder in coders):
            raise OptionError(
                f"--{side}-latent-layer is not allowed with --arch {arch}; "
                "allowed: latent_multilingual_transformer"
            )
