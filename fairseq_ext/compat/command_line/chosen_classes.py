"""The registered classes that the options of a command name, and the options that they declare."""

from __future__ import annotations

import argparse
import sys
from typing import Any, Callable, Iterator, Mapping

# {option as argparse stores it: value}
Values = Mapping[str, Any]
# modules and names of the models whose decoders have no mask for padding
READING_PADDING = {
    ("fairseq.models.fconv", "FConvModel"),
    ("fairseq.models.fconv_self_att", "FConvModelSelfAtt"),
    ("fairseq.models.lightconv", "LightConvModel"),
    ("fairseq.models.lstm", "LSTMModel"),
}
# option_ranges.py has the ranges of their options
STOCK_PACKAGES = ("fairseq", "fairseq_cli", "fairseq_ext")


def foreign_options(values: Values) -> set[str]:
    """Return the options that a task, model, optimiser or the like of another project declares.

    They may bear the names of fairseq's options with other meanings: their ranges are unknown.
    """
    names: set[str] = set()
    for entry in chosen_classes(values):
        if not is_stock(entry):
            names |= declared_options(entry)
    return names


def chosen_classes(values: Values) -> Iterator[type]:
    """Yield the classes that the values name, of the registries that are loaded."""
    registries: dict[str, Mapping[str, type]] = {}
    # not imported for the check: a command without models, fairseq-preprocess, needs none
    tasks, models = sys.modules.get("fairseq.tasks"), sys.modules.get("fairseq.models")
    if tasks is not None:
        registries["task"] = getattr(tasks, "TASK_REGISTRY", {})
    if models is not None:
        registries["arch"] = getattr(models, "ARCH_MODEL_REGISTRY", {})
        registries["model"] = getattr(models, "MODEL_REGISTRY", {})
    if "fairseq.registry" in sys.modules:
        entries = sys.modules["fairseq.registry"].REGISTRIES.items()
        registries.update((name, entry["registry"]) for name, entry in entries)
    for group, registry in registries.items():
        name = values.get(group)
        if isinstance(name, str) and name in registry:
            yield registry[name]


def chosen_model(values: Values) -> type | None:
    """Return the class of --arch; None if there is none, or if models are not loaded."""
    return next(chosen_classes({"arch": values.get("arch")}), None)


def names_of_bases(registered: type) -> set[str]:
    """Return the names of a class and of all that it derives from, which need not be imported."""
    return {base.__name__ for base in registered.__mro__}


def is_language_model(registered: type) -> bool:
    """True if a class predicts the next word of a text."""
    return "FairseqLanguageModel" in names_of_bases(registered)


def is_stock(registered: type) -> bool:
    """Return True if a class is fairseq's or this package's."""
    return registered.__module__.partition(".")[0] in STOCK_PACKAGES


def declared_options(registered: type) -> set[str]:
    """Return the names (as argparse stores them) of the options that a registered class adds."""
    add_args: Callable[[argparse.ArgumentParser], None] | None
    add_args = getattr(registered, "add_args", None)
    if add_args is None:
        return set()
    # "resolve": a class may declare an option twice
    parser = argparse.ArgumentParser(add_help=False, conflict_handler="resolve")
    add_args(parser)
    return {action.dest for action in parser._actions}
