"""Architectures that are named in a configuration of hydra."""

from __future__ import annotations

import functools
from argparse import Namespace
from dataclasses import fields, is_dataclass
from typing import Any, Mapping

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before
from ..user_errors import OptionError


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
                cfg["model"] = nested(name, {**flat(name, options), **values})
        stock(cfg)

    module.add_defaults = add_defaults


@patch(
    "fairseq_cli.hydra_train",
    because="fairseq 0.12.2: `model=MODEL model._name=ARCH` trains MODEL with its defaults, which "
    "the group of MODEL has set, under the name of ARCH",
)
def groups_hide_no_architecture(module: PatchedModule) -> None:
    """Refuse an architecture whose values a group of options has replaced."""

    def check_model(cfg: Any, *args: Any, **kwargs: Any) -> None:
        section = cfg.get("model")
        if hasattr(section, "items") and isinstance(section.get("_name"), str):
            check_complete(module.OmegaConf.to_container(section, resolve=False))

    call_before(module, "_hydra_main", check_model)


def check_complete(options: Mapping[Any, Any]) -> None:
    """Raise OptionError where all options of a model are there without those of its architecture.

    Nobody can tell which of the defaults were typed.

    Args:
        options: {option: value} of the section of the model, "_name" the architecture.
    """
    name = options["_name"]
    defaults = _defaults(name)
    options = flat(name, options)
    if not defaults or not set(defaults) <= set(options):
        return
    values = values_of_architecture(name, {"_name": name})
    lost = [
        f"{option}={value}"
        for option, value in values.items()
        if str(options[option]) == str(defaults[option]) != str(value)
    ]
    if lost:
        raise OptionError(
            f"model._name={name} with model=.., whose defaults replace {', '.join(lost)} of this "
            f"architecture; allowed: model={{_name:{name}}}, with further options in the braces"
        )


def _declaration(name: str) -> Any:
    """Return the class that declares the options of an architecture's model, or None."""
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_DATACLASS_REGISTRY

    return MODEL_DATACLASS_REGISTRY.get(ARCH_MODEL_NAME_REGISTRY.get(name, name))


def _defaults(name: str) -> dict[str, Any]:
    """Return {option: default} of what the model of an architecture declares."""
    declaration = _declaration(name)
    entries = fields(declaration) if declaration else ()
    return flat(name, {entry.name: entry.default for entry in entries})


def _places(name: str) -> dict[str, tuple[str, str]]:
    """Return {"encoder_layers": ("encoder", "layers")} and so on, the options in sections."""
    declaration = _declaration(name)
    sections = fields(declaration) if declaration else ()
    return {
        f"{section.name}_{entry.name}": (section.name, entry.name)
        for section in sections
        if is_dataclass(section.default)
        for entry in fields(section.default)
        if entry.name != "_name"
    }


def flat(name: str, options: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return options by the names of the command line, encoder_layers for layers of encoder."""
    places = _places(name)
    sections = {section for section, _ in places.values()}
    result = {option: value for option, value in options.items() if option not in sections}
    for option, (section, field) in places.items():
        values = options.get(section, {})
        values = values if isinstance(values, Mapping) else vars(values)
        if field in values:
            result[option] = values[field]
    return result


def nested(name: str, options: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return options in the sections that the model of an architecture declares."""
    places = _places(name)
    result: dict[Any, Any] = {}
    for option, value in options.items():
        if option in places:
            section, field = places[option]
            result.setdefault(section, {})[field] = value
        else:
            result[option] = value
    return result


def values_of_architecture(name: str, options: Mapping[Any, Any]) -> dict[str, Any]:
    """Return {option: value} of what an architecture adds to the options that were given.

    Options of sections have the names of the command line. The values are empty for a model that
    declares no options: fairseq gives these their values itself.
    """
    from fairseq.models import ARCH_CONFIG_REGISTRY

    defaults = _defaults(name)
    if not defaults or name not in ARCH_CONFIG_REGISTRY:
        return {}
    options = flat(name, options)
    args = Namespace(**options)
    ARCH_CONFIG_REGISTRY[name](args)
    return {
        # base_shuffle of transformer_lm: a number that its architectures set to False
        option: int(value) if isinstance(value, bool) and type(defaults[option]) is int else value
        for option, value in vars(args).items()
        if option in defaults and option not in options
    }
