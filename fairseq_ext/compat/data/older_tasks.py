"""Tasks that were written for earlier versions of fairseq."""

from __future__ import annotations

import argparse
import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.tasks import FairseqTask

# {method of a task: arguments that fairseq gives it since some version}
NEWER_ARGUMENTS = {
    "build_model": ("from_checkpoint",),
    "load_dataset": ("data_selector", "tpu"),
}


@patch(
    "fairseq.tasks.fairseq_task",
    because="fairseq 0.12.2: tasks with add_args that derive from stock ones, such as translation, "
    "fail with \"object has no attribute 'args'\"; mBART's is among them",
)
def older_tasks_have_their_options(module: PatchedModule) -> None:
    """Keep the options as `args` too, where tasks without a dataclass look for them."""
    task = module.FairseqTask
    build = task.__init__

    @functools.wraps(build)
    def __init__(self: FairseqTask, cfg: Any, *more: Any, **states: Any) -> None:
        build(self, cfg, *more, **states)
        # a task may have a property of this name
        if isinstance(cfg, argparse.Namespace) and not hasattr(type(self), "args"):
            self.args = cfg

    task.__init__ = __init__


@patch(
    "fairseq.tasks",
    because="fairseq 0.12 gives its tasks more arguments than before: those written for earlier "
    "versions, sentence_prediction_adapters and legacy_masked_lm fail with 'unexpected keyword "
    "argument'",
)
def older_tasks_are_called(module: PatchedModule) -> None:
    """Leave out the arguments of NEWER_ARGUMENTS that a task does not take."""
    stock = module.register_task

    @functools.wraps(stock)
    def register_task(name: str, dataclass: Any = None) -> Callable[[type], type]:
        register = stock(name, dataclass)

        def register_task_cls(task: type) -> type:
            take_newer_arguments(task)
            return register(task)

        return register_task_cls

    for task in module.TASK_REGISTRY.values():
        take_newer_arguments(task)
    module.register_task = register_task


def take_newer_arguments(task: Any) -> None:
    """Replace methods of the class itself that lack arguments of NEWER_ARGUMENTS."""
    for name, newer in NEWER_ARGUMENTS.items():
        method = task.__dict__.get(name)
        if not inspect.isfunction(method):
            continue
        parameters = inspect.signature(method).parameters
        unknown = [argument for argument in newer if argument not in parameters]
        if unknown and all(p.kind is not p.VAR_KEYWORD for p in parameters.values()):
            setattr(task, name, without_arguments(method, unknown))


def without_arguments(method: Callable[..., Any], names: list[str]) -> Callable[..., Any]:
    """Return the method so that it ignores the keyword arguments of these names."""

    @functools.wraps(method)
    def call(*args: Any, **options: Any) -> Any:
        return method(*args, **{name: options[name] for name in options if name not in names})

    return call
