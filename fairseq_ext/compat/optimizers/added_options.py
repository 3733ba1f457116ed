"""Options that a plugin's add_args declares beside the dataclass that it registers."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import sys
from typing import Any, Callable, Optional

from ..patch_registry import PatchedModule, patch
from .older_classes import is_of_plugin

# what the add_args of a plugin may raise where it is called with a parser without other options
UNFIT = (argparse.ArgumentError, AttributeError, KeyError, TypeError, ValueError)
BECAUSE = (
    "fairseq 0.12.2: options that the add_args of a plugin declares beside a dataclass, such as "
    "TranslationConfig, are read from the command line and given to nobody"
)


def with_added_options(dataclass: Any, kind: Any) -> Any:
    """Return the dataclass with a field for every further option that a class declares.

    Args:
        dataclass: what the class is registered with, None for none.
        kind: the task, model, criterion or another class that is registered.
    """
    declares = any(is_of_plugin(owner) and "add_args" in vars(owner) for owner in kind.__mro__)
    if dataclass is None or not declares:
        return dataclass
    parser = argparse.ArgumentParser(add_help=False, conflict_handler="resolve")
    try:
        kind.add_args(parser)
    except UNFIT:  # on the command line it fails, too, or it needs what others declare
        return dataclass
    declared = {field.name for field in dataclasses.fields(dataclass)}
    added = [action for action in parser._actions if action.dest not in declared]
    added = [action for action in added if action.option_strings]
    return extended(dataclass, kind, added) if added else dataclass


def extended(dataclass: Any, kind: Any, added: list[argparse.Action]) -> Any:
    """Return a dataclass that derives from one and has the options that are added."""
    name = f"{kind.__name__}Options"
    fields = []
    for action in added:
        default = None if action.default == argparse.SUPPRESS else action.default
        help_text = {"help": action.help}
        fields.append((action.dest, type_of_option(action), field_with_default(default, help_text)))
    options: Any = dataclasses.make_dataclass(name, fields, bases=(dataclass,))
    # where pickle looks for it in the processes of several GPUs
    options.__module__ = kind.__module__
    setattr(sys.modules[kind.__module__], name, options)
    return options


def field_with_default(default: Any, metadata: dict[str, Any]) -> Any:
    """Return a field of a dataclass whose default may be a list."""
    if isinstance(default, (list, dict, set)):
        return dataclasses.field(default_factory=lambda: default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def type_of_option(action: argparse.Action) -> Any:
    """Return the type of the field for an option."""
    if action.nargs == 0:  # store_true
        return Optional[bool] if isinstance(action.const, bool) else Any
    if action.nargs is not None:
        return Any
    kind = action.type or str
    if kind in (int, float, str, bool):
        return Optional[kind]
    return Optional[str] if isinstance(action.default, str) else Any


def extend_dataclasses(
    register: Callable[..., Callable[[type], type]],
) -> Callable[..., Callable[[type], type]]:
    """Return a function that registers classes so that it extends their dataclasses first."""

    @functools.wraps(register)
    def registering(name: str, dataclass: Any = None) -> Callable[[type], type]:
        def register_class(kind: type) -> type:
            # forks of 0.9 take the name alone
            options = () if dataclass is None else (with_added_options(dataclass, kind),)
            return register(name, *options)(kind)

        return register_class

    return registering


def extend_everywhere(module: PatchedModule, name: str) -> None:
    """Extend a function that registers in a package, and in its modules."""
    replace_everywhere(module, name, extend_dataclasses(vars(module)[name]))


def replace_everywhere(module: PatchedModule, name: str, replacement: Any) -> None:
    """Replace a function of a package, and in its modules, which have imported it."""
    stock = getattr(module, name)
    setattr(module, name, replacement)
    for path, imported in list(sys.modules.items()):
        if path.startswith(f"{module.__name__}.") and vars(imported).get(name) is stock:
            setattr(imported, name, replacement)


@patch("fairseq.tasks", because=BECAUSE)
def added_options_of_tasks_are_read(module: PatchedModule) -> None:
    """Give a task of a plugin the options of its add_args."""
    extend_everywhere(module, "register_task")


@patch("fairseq.models", because=BECAUSE)
def added_options_of_models_are_read(module: PatchedModule) -> None:
    """Give a model of a plugin the options of its add_args."""
    extend_everywhere(module, "register_model")


@patch("fairseq.registry", because=BECAUSE)
def added_options_of_others_are_read(module: PatchedModule) -> None:
    """Give a criterion, optimizer or schedule of a plugin the options of its add_args."""
    stock = module.setup_registry

    @functools.wraps(stock)
    def setup_registry(*args: Any, **options: Any) -> Any:
        build, register, *tables = stock(*args, **options)
        return (build, extend_dataclasses(register), *tables)

    module.setup_registry = setup_registry


# {module: its class whose add_args declares the fields of a dataclass}
DECLARING = {
    "fairseq.criterions.fairseq_criterion": "FairseqCriterion",
    "fairseq.models.fairseq_model": "BaseFairseqModel",
    "fairseq.optim.fairseq_optimizer": "FairseqOptimizer",
    "fairseq.optim.lr_scheduler.fairseq_lr_scheduler": "FairseqLRScheduler",
    "fairseq.tasks.fairseq_task": "FairseqTask",
}


@patch(
    *DECLARING,
    because="fairseq 0.12.2: tasks, models and criteria of plugins that derive from fairseq's and "
    "are registered by a name alone, as in 0.10, lose the options of these: 'unrecognized "
    "arguments'",
)
def options_of_dataclasses_are_inherited(module: PatchedModule) -> None:
    """Declare the options of the class that a plugin's class without a dataclass derives from."""
    base = vars(module)[DECLARING[module.__name__]]
    stock = base.add_args.__func__

    @functools.wraps(stock)
    def add_args(cls: Any, parser: Any) -> None:
        owners = [owner for owner in cls.__mro__ if vars(owner).get("__dataclass") is not None]
        stock(owners[0] if owners and is_of_plugin(cls) else cls, parser)

    base.add_args = classmethod(add_args)
