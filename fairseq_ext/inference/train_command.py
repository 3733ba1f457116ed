"""The command that trained a model, from the configuration in its checkpoint."""

import argparse
import shlex
from argparse import Namespace
from dataclasses import fields
from typing import Any, Dict, List, Optional

from fairseq.criterions import CRITERION_DATACLASS_REGISTRY, CRITERION_REGISTRY
from fairseq.dataclass.configs import FairseqConfig
from fairseq.models import (
    ARCH_CONFIG_REGISTRY,
    ARCH_MODEL_NAME_REGISTRY,
    ARCH_MODEL_REGISTRY,
    MODEL_DATACLASS_REGISTRY,
)
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY
from omegaconf import DictConfig, OmegaConf

from ..compat.checkpoints.configurations import chosen_name, options_of, registered_model
from ..compat.user_errors import option_of

PLAIN_GROUPS = ("common", "dataset", "optimization", "checkpoint", "ema")
CHOSEN_GROUPS = ("task", "model", "criterion", "optimizer", "lr_scheduler")
# where a run keeps its files, and what belongs to its machine
LEFT_OUT = {"data", "save_dir", "restore_file", "log_file", "tensorboard_logdir", "user_dir"}
LEFT_OUT |= {"cpu", "num_workers", "no_progress_bar", "log_format", "log_interval", "profile"}
LEFT_OUT |= {"finetune_from_model", "twin_stored", "num_workers_valid"}


def train_command(cfg: DictConfig) -> str:
    """Return the command of fairseq-train: what differs from the defaults, without paths."""
    names = {group: chosen_name(cfg.get(group), group) for group in CHOSEN_GROUPS}
    words = ["fairseq-train", "DATA"]
    modules = [type_.__module__ for type_ in _classes(names)]
    if any(not module.startswith("fairseq.") for module in modules):
        words += ["--user-dir", "$(fairseq-ext user-dir)"]
    for group in CHOSEN_GROUPS:
        name = names[group]
        if name:
            words += ["--arch" if group == "model" else option_of(group), name]
    for name, value in _options(cfg, names).items():
        words += _words(name, value)
    text = " ".join(word if word.startswith("$(") else shlex.quote(word) for word in words)
    return text.replace("$(fairseq-ext user-dir)", '"$(fairseq-ext user-dir)"')


def _options(cfg: DictConfig, names: Dict[str, Optional[str]]) -> Dict[str, Any]:
    """Return {option: value} of what differs from the defaults.

    names: what the run has chosen, by group.
    """
    options: Dict[str, Any] = {}
    for group in PLAIN_GROUPS:
        if cfg.get(group) is not None:
            options.update(_changed(cfg[group], _defaults(FairseqConfig(), group)))
    for group in CHOSEN_GROUPS:
        part = cfg.get(group)
        if isinstance(part, DictConfig):
            options.update(_changed(part, _defaults_of(group, names[group])))
    # a Namespace, or what fairseq-hydra-train has stored of it
    legacy = [] if names["task"] in TASK_DATACLASS_REGISTRY else [cfg.task]
    legacy += [] if registered_model(cfg.model) in MODEL_DATACLASS_REGISTRY else [cfg.model]
    for part in legacy:
        for name, value in _changed_legacy(part, names).items():
            options.setdefault(name, value)
    if options_of(cfg.task).get("lang_pairs") is None:
        options.pop("lang_pairs", None)  # the run's, which it has carried into the model's options
    return options


def _classes(names: Dict[str, Optional[str]]) -> List[Any]:
    """Return the registered classes of a run's parts."""
    registries = {
        "task": TASK_REGISTRY,
        "model": ARCH_MODEL_REGISTRY,
        "criterion": CRITERION_REGISTRY,
    }
    classes = [registry.get(names[group] or "") for group, registry in registries.items()]
    return [entry for entry in classes if entry is not None]


def _defaults(instance: Any, group: str) -> Dict[str, Any]:
    """Return {option: default} of a group that every run has."""
    part = getattr(instance, group)
    return {entry.name: getattr(part, entry.name) for entry in fields(part)}


def _defaults_of(group: str, name: Optional[str]) -> Dict[str, Any]:
    """Return {option: default} of a registered part; of an architecture its own sizes."""
    registry: Dict[str, Any] = {
        "task": TASK_DATACLASS_REGISTRY,
        "criterion": CRITERION_DATACLASS_REGISTRY,
        "model": MODEL_DATACLASS_REGISTRY,
    }.get(group) or REGISTRIES[group]["dataclass_registry"]
    # an architecture has the options of its model, and its own defaults of some
    of_model = ARCH_MODEL_NAME_REGISTRY.get(name, name) if group == "model" else name
    options = registry.get(of_model or "")
    if options is None:
        return {}
    instance = options()
    defaults = {
        entry.name: getattr(instance, entry.name)
        for entry in fields(instance)
        if "written_by" not in entry.metadata  # nobody sets these
    }
    if group == "model" and name in ARCH_CONFIG_REGISTRY:
        # it sets what is not there; what the dataclass alone has stays
        chosen = Namespace()
        ARCH_CONFIG_REGISTRY[name](chosen)
        defaults.update(vars(chosen))
    return defaults


def _changed(part: DictConfig, defaults: Dict[str, Any]) -> Dict[str, Any]:
    """Return the options of a group that differ from their defaults."""
    values = OmegaConf.to_container(part, resolve=True, enum_to_str=True)
    assert isinstance(values, dict)  # a group has names
    changed = {}
    for name, value in values.items():
        default = defaults.get(name)
        # "${task.lang_pairs}": the option of another group
        is_borrowed = isinstance(default, str) and default.startswith("${")
        is_option = name in defaults and name not in LEFT_OUT and not str(name).startswith("_")
        if (
            is_option
            and not is_borrowed
            and _text(value) != _text(getattr(default, "value", default))
        ):
            changed[str(name)] = value
    return changed


def _text(value: Any) -> str:
    """Return a value as text; checkpoints hold tuples as lists, and 0 of a float option as 0.0."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(float(value))
    return str(list(value) if isinstance(value, tuple) else value)


def _changed_legacy(part: Any, names: Dict[str, Optional[str]]) -> Dict[str, Any]:
    """Return the options of tasks and models without a dataclass that differ from defaults."""
    parser = argparse.ArgumentParser(add_help=False, conflict_handler="resolve")
    for registry, group in ((TASK_REGISTRY, "task"), (ARCH_MODEL_REGISTRY, "model")):
        entry = registry.get(names[group])
        if entry is not None and hasattr(entry, "add_args"):
            entry.add_args(parser)
    defaults = {action.dest: action.default for action in parser._actions if action.option_strings}
    chosen = Namespace(**{k: v for k, v in defaults.items() if v is not None})
    arch = names["model"]
    if arch in ARCH_CONFIG_REGISTRY:
        ARCH_CONFIG_REGISTRY[arch](chosen)
    expected = {**defaults, **vars(chosen)}
    with_value = {action.dest for action in parser._actions if action.nargs != 0}
    return {
        # --weight-softmax takes True or False
        name: str(value) if isinstance(value, bool) and name in with_value else value
        for name, value in options_of(part).items()
        if name in defaults and name not in LEFT_OUT and _text(value) != _text(expected.get(name))
    }


def _words(name: str, value: Any) -> List[str]:
    """Return an option as words of the command line."""
    option = option_of(name)
    if isinstance(value, bool):
        # a flag is given where it is not as by default; those that are on by default take a value
        return [option] if value else [option, "False"]
    if value is None or (isinstance(value, str) and value.startswith("/")):
        return []
    if isinstance(value, (list, tuple)):
        return (
            [option, ",".join(map(str, value))]
            if name in ("lr", "update_freq")
            else [option, "(" + ", ".join(map(str, value)) + ")"]
        )
    return [option, str(value)]
