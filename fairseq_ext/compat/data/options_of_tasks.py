"""The options of a task in one Namespace, as plugins for fairseq 0.9 and 0.10 read them."""

from __future__ import annotations

import argparse
import dataclasses
import enum
import functools
from typing import TYPE_CHECKING, Any, Iterable, Mapping

from ..computed_attributes import AttributeUntilSet
from ..generation.older_programs import NAMED_GROUPS, options_in_one, place_of_group
from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.tasks import FairseqTask

ABSENT = object()  # of an option without a value


class OptionsOfTask(argparse.Namespace):
    """The options of a task with a dataclass: its own, and then those of its whole run.

    They are read where fairseq reads them. An assignment to one of the task's own changes it there,
    and one to a new name is noted with the task. A copy is a plain Namespace, and so is what pickle
    stores.
    """

    def __init__(self, task: FairseqTask) -> None:
        object.__setattr__(self, "_task", task)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]  # what vars() returns
        return all_options(self._task)

    def __getattr__(self, name: str) -> Any:
        value = ABSENT if name.startswith("__") else option_of_task(self._task, name)
        if value is ABSENT:
            raise AttributeError(f"{type(self._task).__name__}.args has no option {name!r}")
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        states = vars(self._task)
        cfg, namespace = states["cfg"], states.get("namespace")
        if name in names_of(cfg):
            setattr(cfg, name, value)
        elif name in names_of(namespace):
            setattr(namespace, name, value)
        elif name not in states.get("added_options", {}) and hasattr(self, name):
            raise AttributeError(
                f"args.{name} is an option of another part of the run, which the task cannot change"
            )
        else:
            states.setdefault("added_options", {})[name] = value

    def __reduce__(self) -> Any:
        return argparse.Namespace, (), vars(self)


def names_of(group: Any) -> Iterable[str]:
    """Return the names of the options of a group of a configuration, with values or without."""
    if isinstance(group, Mapping):
        nodes = vars(group)["_content"] if hasattr(group, "__dict__") else group
        return nodes if isinstance(nodes, dict) else ()
    if dataclasses.is_dataclass(group):
        return [field.name for field in dataclasses.fields(group)]
    return list(vars(group)) if isinstance(group, argparse.Namespace) else []


def option_of_group(group: Any, name: str) -> Any:
    """Return an option of a group of a configuration, or ABSENT: lists and texts are plain ones."""
    from omegaconf import ListConfig, OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    if name not in names_of(group):
        return ABSENT
    try:
        value = group[name] if isinstance(group, Mapping) else getattr(group, name)
    except OmegaConfBaseException:  # without a value, or one that refers to none
        return ABSENT
    if isinstance(value, ListConfig):
        return OmegaConf.to_container(value, resolve=True)
    return value.value if isinstance(value, enum.Enum) else value


def option_of_task(task: Any, name: str) -> Any:
    """Return an option of a task or of its run, or ABSENT."""
    states = vars(task)
    for options in (states["cfg"], states.get("namespace"), states.get("added_options")):
        value = option_of_group(options, name)
        if value is not ABSENT:
            return value
    return option_of_run(vars(states["cfg"]).get("_parent"), name)


def option_of_run(run: Any, name: str) -> Any:
    """Return what `options_in_one` has under a name, or ABSENT; read anew, as groups change."""
    if not isinstance(run, Mapping):
        return ABSENT
    # the nodes themselves: omegaconf's own way is too slow for what losses read in each update
    groups = {group: node_of(run, group) for group in names_of(run)}
    if name in NAMED_GROUPS and name in groups:
        return getattr(groups[name], "_name", None)
    model = groups.get("model")
    # without a dataclass, a model has the options of all groups
    last = "model" if isinstance(model, argparse.Namespace) else None
    for group in sorted(groups, key=lambda group: (group != last, place_of_group(group)))[::-1]:
        if name in names_of(groups[group]):
            value = option_of_group(groups[group], name)
            if value is not ABSENT:
                return value
    return getattr(model, "_name", ABSENT) if name == "arch" else ABSENT


def node_of(run: Any, group: str) -> Any:
    """Return a group of a configuration: a DictConfig, or the Namespace in a node."""
    node = vars(run)["_content"][group]
    return node if isinstance(node, Mapping) else node._value()


def all_options(task: Any) -> dict[str, Any]:
    """Return the options of a task and of its run that have a value."""
    states = vars(task)
    run = vars(states["cfg"]).get("_parent")
    names = dict.fromkeys(vars(options_in_one(run, task)) if names_of(run) else ())
    for options in (states["cfg"], states.get("namespace"), states.get("added_options")):
        names.update(dict.fromkeys(names_of(options)))
    values = {name: option_of_task(task, name) for name in names if not name.startswith("_")}
    return {name: value for name, value in values.items() if value is not ABSENT}


def args_of_task(task: FairseqTask) -> OptionsOfTask:
    """Return the attribute `args` of a task; AttributeError for one without options."""
    cfg = vars(task).get("cfg")
    if not isinstance(cfg, Mapping) and not dataclasses.is_dataclass(cfg):
        raise AttributeError(f"{type(task).__name__!r} object has no attribute 'args'")
    return OptionsOfTask(task)


@patch(
    "fairseq.tasks.fairseq_task",
    because="fairseq 0.12: criteria, models and programs for 0.9 and 0.10 that read "
    "task.args.source_lang or task.args.max_tokens fail with \"object has no attribute 'args'\"",
)
def tasks_have_args(module: PatchedModule) -> None:
    """Give tasks with a dataclass their options and those of the run in one Namespace."""
    # tasks may set it or have a property of this name
    module.FairseqTask.args = AttributeUntilSet(args_of_task)


@patch(
    "fairseq.tasks",
    because="fairseq 0.12: a task with a dataclass that is made of a Namespace keeps its own "
    "options alone",
)
def tasks_know_their_namespace(module: PatchedModule) -> None:
    """Note with a task the Namespace that it is made of."""
    stock = module.setup_task

    @functools.wraps(stock)
    def setup_task(cfg: Any, **more: Any) -> FairseqTask:
        task: FairseqTask = stock(cfg, **more)
        if isinstance(cfg, argparse.Namespace) and "args" not in vars(task):
            vars(task)["namespace"] = cfg
        return task

    module.setup_task = setup_task
