"""Options of a model that have another value than in the training: the model computes otherwise."""

from __future__ import annotations

import logging
import re
from typing import Any, Iterator, Mapping

from ..command_line.chosen_classes import chosen_classes, declared_options, is_stock
from .configurations import chosen_name, options_of

logger = logging.getLogger(__name__)

# options that leave the function of a trained model as it is, or that are there to be changed:
# dropout, longest texts, layers that are left out, memory, files with which a training began
NEUTRAL = re.compile(
    r"drop|max_\w*positions$|^tokens_per_sample$|layers_to_keep$|_activations$|^min_params_to_wrap$"
    r"|_path$|_from$|pretrained|freeze|frozen|quant_noise|^data$|^tpu$|^base_shuffle$"
)


def model_values(cfg: Any) -> dict[str, Any] | None:
    """Return {option: value} of what a configuration says of its model, in groups "GROUP.NAME".

    None for a model of another project, which may read options that it does not declare, and for
    one that is not registered.

    Args:
        cfg: of a checkpoint, with groups; of an old one a Namespace with all options.
    """
    is_flat = not hasattr(cfg, "items")
    section = cfg if is_flat else cfg.get("model")
    name = chosen_name(section, "model")
    classes = set(chosen_classes({"model": name, "arch": name}))
    if not classes or not all(is_stock(entry) for entry in classes):
        return None
    if hasattr(section, "items"):
        return dict(_leaves(section))
    declared = set().union(*map(declared_options, classes))
    # what an architecture adds stands in the Namespace beside the options of all groups
    others = set() if is_flat else _names_of_other_groups(cfg)
    return {
        option: value
        for option, value in vars(section).items()
        if option in declared or not (is_flat or option in others)
    }


def _names_of_other_groups(cfg: Any) -> set[str]:
    """Return the options of all groups but the model, and the names of the groups."""
    names = {"arch", *map(str, cfg)}
    for group in cfg:
        section = cfg.get(group) if group != "model" else None
        if hasattr(section, "items"):
            names |= {option for option, _ in _items(section)}
    return names | declared_by_task(cfg)


def declared_by_task(cfg: Any) -> set[str]:
    """Return the options of the task that a configuration names, as its class declares them."""
    section = cfg.get("task") if hasattr(cfg, "items") else cfg
    names: set[str] = set(options_of(section)) if hasattr(section, "items") else set()
    for entry in chosen_classes({"task": chosen_name(section, "task")}):
        names |= declared_options(entry)
    return names


def _items(section: Any) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of a mapping; of omegaconf's without resolving what refers to others."""
    pairs = section.items_ex(resolve=False) if hasattr(section, "items_ex") else section.items()
    for name, value in pairs:
        yield str(name), value


def _leaves(section: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of a mapping and of the mappings in it."""
    for name, value in _items(section):
        if hasattr(value, "items"):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def warn_of_changes(
    path: str, stored: Mapping[str, Any] | None, present: Mapping[str, Any] | None
) -> None:
    """Warn of each option of a model that was another one when a checkpoint was written.

    The parameters may fit all the same: as many heads of another width, another activation.

    Args:
        path: of the checkpoint. stored, present: what `model_values` returns.
    """
    if stored is None or present is None:
        return
    for name, value in present.items():
        before = stored.get(name)
        if str(before) == str(value) or NEUTRAL.search(name):
            continue
        if name not in stored and value in (None, False):
            continue  # an option that is younger than the checkpoint
        trained = f"was {before}" if name in stored else "was not there"
        logger.warning(
            f"{path}: {name} is {value} and {trained} in the training: the model computes other "
            "numbers than the trained one"
        )
