"""Searches that tasks for fairseq 0.9 and 0.10 build of all options of the command."""

from __future__ import annotations

import argparse
import copy
import functools
import inspect
from typing import Any, Callable

from ..command_line.chosen_classes import is_stock
from ..optimizers.added_options import replace_everywhere
from ..patch_registry import PatchedModule, patch

# what a group of omegaconf holds
PLAIN = (bool, int, float, str, type(None), list, tuple, dict)


@patch(
    "fairseq.tasks",
    because="fairseq 0.12 gives build_generator of a task the options of a search alone: those of "
    "the task itself, which tasks for 0.9 and 0.10 read there, have their defaults, without a "
    "message, or fail with \"Key 'name' is not in struct\"",
)
def searches_know_options_of_tasks(module: PatchedModule) -> None:
    """Add the options of a task of a plugin to those that it is given for a search."""
    stock = module.register_task

    @functools.wraps(stock)
    def register_task(name: str, *options: Any, **named: Any) -> Callable[[type], type]:
        register = stock(name, *options, **named)

        def register_task_cls(task: type) -> type:
            registered = register(task)  # which refuses what is no task
            for owner in task.__mro__:
                method = vars(owner).get("build_generator")
                if inspect.isfunction(method) and not is_stock(owner):
                    owner.build_generator = given_all_options(method)  # type: ignore[attr-defined]
            return registered

        return register_task_cls

    replace_everywhere(module, "register_task", register_task)


def given_all_options(method: Any) -> Any:
    """Return a `build_generator` whose options of a search have those of the task among them."""

    @functools.wraps(method)
    def build_generator(self: Any, *args: Any, **named: Any) -> Any:
        args = tuple(with_options_of(self, options) for options in args)
        named = {name: with_options_of(self, options) for name, options in named.items()}
        return method(self, *args, **named)

    return build_generator


def with_options_of(task: Any, options: Any) -> Any:
    """Return a group of options with those that it lacks of a task for 0.9 or 0.10 added.

    Anything else is returned as it is: what is no group, and the options of a task of today.
    """
    from omegaconf import DictConfig, OmegaConf, open_dict

    of_task = vars(task).get("args")
    if type(options) is not DictConfig or not isinstance(of_task, argparse.Namespace):
        return options
    group = copy.deepcopy(options)
    with open_dict(group):
        for name, value in vars(of_task).items():
            if name not in group and isinstance(value, PLAIN):
                group[name] = value
    OmegaConf.set_struct(group, True)  # a name that neither has is an error
    return group
