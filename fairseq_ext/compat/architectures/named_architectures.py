"""Architectures that are named in a configuration of hydra."""

from __future__ import annotations

import functools
from argparse import Namespace
from dataclasses import fields
from typing import Any, Mapping

from ..patch_registry import PatchedModule, patch


@patch(
    "fairseq.dataclass.initialize",
    because="fairseq 0.12.2: with `model: {_name: ARCH}` fairseq-hydra-train trains a model that "
    "declares its options with their defaults, whatever values the architecture has",
)
def architectures_have_their_values(module: PatchedModule) -> None:
    """Give the model the values of its architecture first, as --arch does, then the defaults."""
    stock = module.add_defaults

    @functools.wraps(stock)
    def add_defaults(cfg: Any) -> None:
        section = cfg.get("model")
        if isinstance(section, Namespace):  # of --arch, which gave it its values
            stock(cfg)
            return
        name = section if isinstance(section, str) else getattr(section, "_name", None)
        if isinstance(name, str):
            options = {"_name": name}
            if not isinstance(section, str):
                options = module.OmegaConf.to_container(section, resolve=False)
            values = values_of_architecture(name, options)
            if values:
                module.OmegaConf.set_struct(cfg, False)  # as the stock function does
                cfg["model"] = {**options, **values}
        stock(cfg)

    module.add_defaults = add_defaults


def values_of_architecture(name: str, options: Mapping[Any, Any]) -> dict[str, Any]:
    """Return {option: value} of what an architecture adds to the options that were given.

    It is empty for a model that declares no options: fairseq gives these their values itself.
    """
    from fairseq.models import (
        ARCH_CONFIG_REGISTRY,
        ARCH_MODEL_NAME_REGISTRY,
        MODEL_DATACLASS_REGISTRY,
    )

    declaration = MODEL_DATACLASS_REGISTRY.get(ARCH_MODEL_NAME_REGISTRY.get(name, name))
    if declaration is None or name not in ARCH_CONFIG_REGISTRY:
        return {}
    args = Namespace(**options)
    ARCH_CONFIG_REGISTRY[name](args)
    defaults = {entry.name: entry.default for entry in fields(declaration)}
    return {
        # base_shuffle of transformer_lm: a number that its architectures set to False
        option: int(value) if isinstance(value, bool) and type(defaults[option]) is int else value
        for option, value in vars(args).items()
        if option in defaults and option not in options
    }
