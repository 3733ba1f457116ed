"""Searches that tasks for fairseq 0.9 and 0.10 build of all options of the command."""

from __future__ import annotations

import argparse
import copy
import functools
import inspect
from typing import Any, Callable

from ..optimizers.added_options import replace_everywhere
from ..patch_registry import PatchedModule, patch


@patch(
    "fairseq.tasks",
    because="fairseq 0.12 gives build_generator of a task the options of a search alone: those of "
    "the task itself, which tasks for 0.9 and 0.10 read there, have their defaults, without a "
    "message, or fail with \"Key 'name' is not in struct\"",
)
def searches_know_options_of_tasks(module: PatchedModule) -> None:
    """Let the options that a task of a plugin is given for a search answer for its own, too."""
    stock = module.register_task

    @functools.wraps(stock)
    def register_task(name: str, *options: Any, **named: Any) -> Callable[[type], type]:
        register = stock(name, *options, **named)

        def register_task_cls(task: type) -> type:
            registered = register(task)  # which refuses what is no task
            for owner in task.__mro__:
                method = vars(owner).get("build_generator")
                if inspect.isfunction(method) and not owner.__module__.startswith("fairseq."):
                    owner.build_generator = given_all_options(method)  # type: ignore[attr-defined]
            return registered

        return register_task_cls

    replace_everywhere(module, "register_task", register_task)


def given_all_options(method: Any) -> Any:
    """Return a `build_generator` whose options of a search answer for those of the task."""

    @functools.wraps(method)
    def build_generator(self: Any, *args: Any, **named: Any) -> Any:
        for options in (*args, *named.values()):
            answer_for_task(options, self)
        return method(self, *args, **named)

    return build_generator


def answer_for_task(options: Any, task: Any) -> None:
    """Let a group of options look for a name that it lacks among those of an older task."""
    from omegaconf import DictConfig

    of_task = vars(task).get("args")
    if type(options) is DictConfig and isinstance(of_task, argparse.Namespace):
        # an assignment to an attribute would add an option of this name
        object.__setattr__(options, "__class__", answering_options())
        vars(options)["_of_task"] = of_task


@functools.lru_cache(maxsize=None)
def answering_options() -> Any:
    """Return a class of configurations that look for a name among the options of a task too."""
    from omegaconf import DictConfig

    class AnsweringOptions(DictConfig):
        def __getattr__(self, key: str) -> Any:
            try:
                return super().__getattr__(key)
            except AttributeError:
                of_task = vars(vars(self).get("_of_task", argparse.Namespace()))
                if key.startswith("_") or key not in of_task:
                    raise
                return of_task[key]

        def __reduce_ex__(self, protocol: Any) -> Any:
            return copy.copy(self).__reduce_ex__(protocol)

        # pickle stores no object by another class than its own
        @property  # type: ignore[misc]  # of one that can be assigned
        def __class__(self) -> Any:
            return DictConfig

    return AnsweringOptions
