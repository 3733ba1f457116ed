"""Options of models whose configuration is that of fairseq's Transformer, or holds another one."""

from __future__ import annotations

import functools
from argparse import ArgumentParser, Namespace
from typing import Any

from ..patch_registry import PatchedModule, patch


@patch(
    "fairseq.dataclass.utils",
    because="fairseq 0.12.2: a model that is registered with TransformerConfig, or with a class "
    "derived from it, takes --encoder-layers and the like and is built with the defaults",
)
def nested_options_are_read(module: PatchedModule) -> None:
    """Look an option of a nested configuration up by the name that it has on the command line."""
    stock = module._override_attr

    @functools.wraps(stock)
    def _override_attr(sub_node: str, data_class: Any, args: Namespace) -> list[str]:
        overrides: list[str] = stock(sub_node, data_class, unnested(sub_node, data_class, args))
        return overrides

    module._override_attr = _override_attr


def unnested(sub_node: str, data_class: Any, args: Namespace) -> Namespace:
    """Return the options, with those of a nested configuration by the names of its fields.

    Args:
        sub_node: the place of the configuration, such as "model" or "model.encoder"
        data_class: the class of the configuration
        args: the options of the command; `encoder_layers` is `layers` of model.encoder
    """
    prefix = "_".join(sub_node.split(".")[1:])
    fields = getattr(data_class, "__dataclass_fields__", {})
    named = {name: f"{prefix}_{name}" for name in fields if prefix}
    options = vars(args) if args is not None else {}
    nested = {name: options[option] for name, option in named.items() if option in options}
    return Namespace(**{**options, **nested}) if nested else args


@patch(
    "fairseq.models.transformer.transformer_base",
    because="fairseq 0.12.2: a model derived from TransformerModelBase does not take the options "
    "of its own configuration, and the sizes of its named architectures change nothing",
)
def derived_transformers_have_options(module: PatchedModule) -> None:
    """Declare the options without defaults, which would hide the values of the architecture."""
    base = module.TransformerModelBase

    def add_args(cls: type, parser: ArgumentParser) -> None:
        """Add the options of the model to the parser."""
        config = module.TransformerConfig
        # a class with `add_args` of its own adds what it needs by itself
        declared = getattr(cls, "__dataclass", None)
        inherits = next(owner for owner in cls.__mro__ if "add_args" in vars(owner)) is base
        if inherits and isinstance(declared, type) and issubclass(declared, config):
            config = declared
        module.gen_parser_from_dataclass(parser, config(), delete_default=True, with_prefix="")

    base.add_args = classmethod(add_args)
