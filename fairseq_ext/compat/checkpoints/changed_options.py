"""Options of a model that have another value than in the training: the model computes otherwise."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any, Iterator, Mapping

from ..command_line.chosen_classes import chosen_classes, declared_options, is_stock
from ..module_overlay import overlaid, overlay_names
from ..patch_registry import PatchedModule, patch
from .configurations import chosen_name, options_of, registered_model
from .option_effects import may_change_function

if TYPE_CHECKING:
    from fairseq.trainer import Trainer

logger = logging.getLogger(__name__)

READER = "load_checkpoint_to_cpu"


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
        return dict(leaves(section))
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


def leaves(section: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of a mapping and, as "GROUP.NAME", of the mappings in it."""
    for name, value in _items(section):
        if hasattr(value, "items"):
            yield from leaves(value, f"{prefix}{name}.")
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
        # an option that is younger than the checkpoint, or whose switch had no default then
        is_off = before in (None, False) and value in (None, False)
        if str(before) == str(value) or is_off or not may_change_function(name):
            continue
        trained = f"was {before}" if name in stored else "was not there"
        logger.warning(
            f"{path}: {name} is {value} and {trained} when it was trained: the model computes "
            "other numbers than the trained one"
        )


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: a training that goes on, or begins with the model of another one, "
    "with options that leave the parameters as they are, such as another number of heads, trains "
    "a model that computes something else, without a word",
)
def other_options_are_named(module: PatchedModule) -> None:
    """Compare the model's options with those of the checkpoint that a training reads."""
    load = module.Trainer.load_checkpoint
    earlier = overlaid(module, "checkpoint_utils", READER)
    # the trainer that reads a checkpoint meanwhile
    reading: list[Trainer] = []

    def load_checkpoint_to_cpu(path: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
        from fairseq import checkpoint_utils

        read = earlier or checkpoint_utils.load_checkpoint_to_cpu
        state: dict[str, Any] = read(path, *args, **kwargs)
        for trainer in reading:
            warn_of_other_options(path, state.get("cfg"), trainer.cfg)
        return state

    @functools.wraps(load)
    def load_checkpoint(self: Trainer, *args: Any, **kwargs: Any) -> Any:
        reading[:] = [self]
        try:
            return load(self, *args, **kwargs)
        finally:
            reading.clear()

    overlay_names(module, "checkpoint_utils", **{READER: load_checkpoint_to_cpu})
    module.Trainer.load_checkpoint = load_checkpoint


def warn_of_other_options(path: str, stored: Any, present: Any) -> None:
    """Warn of options of a training's model that its checkpoint has with other values.

    Args:
        stored, present: the configurations of the checkpoint and of the training.
    """
    if not hasattr(stored, "items") or not hasattr(present, "items"):
        return
    names = [chosen_name(entry.get("model"), "model") for entry in (stored, present)]
    if registered_model(names[0]) != registered_model(names[1]):
        return  # one that begins with parameters of a different model
    before, values = model_values(stored) or {}, model_values(present) or {}
    # checkpoints have the pairs as the task has read them, and what a model has settled for None
    both = {name for name in before if values.get(name) is not None} - {"lang_pairs"}
    warn_of_changes(path, before, {name: values[name] for name in sorted(both)})
