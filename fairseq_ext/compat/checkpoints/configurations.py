"""What the configuration in a checkpoint says: the options of its groups, and what they choose.

A group ("task", "model", "criterion") is a mapping where its class has a dataclass, and otherwise
a Namespace with all options of the command line. A group that nobody set may be a bare name.
Checkpoints from before fairseq 0.10 have one Namespace, "args", in the place of all groups.
"""

from __future__ import annotations

import os
from typing import Any, Mapping, MutableMapping

# files of vectors with which a training began: the checkpoint holds what became of them
FIRST_VECTORS = ("encoder_embed_path", "decoder_embed_path")
# the option that chooses the class of a group, where it is not called as the group
OPTION = {"model": "arch"}


def options_of(group: Any) -> MutableMapping[str, Any]:
    """Return the options of a group as a mapping that writes into the group; empty for None."""
    if group is None:
        return {}
    return group if isinstance(group, MutableMapping) else vars(group)


def options_of_task(task: Any) -> MutableMapping[str, Any]:
    """Return the options of a task; one without a dataclass has them as `args`."""
    return options_of(getattr(task, "cfg", None) or getattr(task, "args", None))


def chosen_name(group: Any, kind: str) -> str | None:
    """Return the name by which the class or architecture of a group is registered; None for none.

    Args:
        group: the group of a configuration, or the Namespace of all options.
        kind: what the group is called: "task", "model", "criterion" ...
    """
    if isinstance(group, str):
        return group
    options = options_of(group)
    for option in ("_name", OPTION.get(kind, kind)):
        if option in options and options[option]:
            return str(options[option])
    return None


def registered_model(model: Any) -> str | None:
    """Return the registered model of a group "model": of an architecture the model it is one of.

    Of an architecture that is not registered the name itself.
    """
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY

    name = chosen_name(model, "model")
    return ARCH_MODEL_NAME_REGISTRY.get(name, name)


def stored_group(state: Mapping[str, Any], kind: str) -> Any:
    """Return a group of a checkpoint's configuration; None where the checkpoint has none."""
    cfg = state.get("cfg")
    group = cfg[kind] if isinstance(cfg, Mapping) and kind in cfg else None
    return state.get("args") if group is None else group


def stored_name(state: Mapping[str, Any], kind: str) -> str | None:
    """Return the name of the task, architecture or criterion of a checkpoint; None for none."""
    return chosen_name(stored_group(state, kind), kind)


def forget_missing_vectors(state: Mapping[str, Any]) -> None:
    """Leave files of vectors that are not there out of the configuration of a checkpoint.

    The vectors would be replaced by those of the checkpoint anyway.
    """
    cfg = state.get("cfg")
    for section in (state.get("args"), cfg.get("model") if isinstance(cfg, Mapping) else None):
        options = {} if isinstance(section, str) else options_of(section)
        for name in FIRST_VECTORS:
            if options.get(name) and not os.path.isfile(options[name]):
                options[name] = None
