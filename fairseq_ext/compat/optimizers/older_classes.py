"""Optimizers, learning rates and criteria that were written for earlier versions of fairseq."""

from __future__ import annotations

import argparse
import functools
import inspect
from typing import Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after


def keep_options(base: Any) -> None:
    """Keep the options as `args` too, where classes without a dataclass look for them."""

    def keep(self: Any, cfg: Any, *more: Any, **options: Any) -> None:
        # those of fairseq 0.10 read `args` with a dataclass, too
        is_older = isinstance(cfg, argparse.Namespace) or is_of_plugin(type(self))
        # a class may have a property of this name
        if is_older and not hasattr(type(self), "args"):
            self.args = cfg

    call_after(base, "__init__", keep)


def is_of_plugin(kind: type) -> bool:
    """True if the class is not fairseq's own."""
    return not kind.__module__.startswith("fairseq.")


@patch(
    "fairseq.optim.fairseq_optimizer",
    because="fairseq 0.12.2: optimizers of plugins with add_args, written for fairseq 0.10, fail "
    "with \"object has no attribute 'args'\"",
)
def older_optimizers_have_their_options(module: PatchedModule) -> None:
    """Give FairseqOptimizer `args`, as in fairseq 0.10."""
    keep_options(module.FairseqOptimizer)


@patch(
    "fairseq.optim.lr_scheduler.fairseq_lr_scheduler",
    because="fairseq 0.12.2: learning rate schedules of plugins with add_args, written for fairseq "
    "0.10, fail with \"object has no attribute 'args'\"",
)
def older_schedules_have_their_options(module: PatchedModule) -> None:
    """Give FairseqLRScheduler `args`, as in fairseq 0.10."""
    keep_options(module.FairseqLRScheduler)


@patch(
    "fairseq.criterions.fairseq_criterion",
    because="fairseq 0.10 changed how criteria are made: those for 0.9, which take the options and "
    "the task, fail with 'Unable to infer Criterion arguments'",
)
def older_criteria_have_their_options(module: PatchedModule) -> None:
    """Make criteria whose arguments are `args` and `task` as fairseq 0.9 did."""
    criterion = module.FairseqCriterion
    make, build = criterion.__init__, criterion.build_criterion.__func__

    @functools.wraps(make)
    def __init__(self: Any, task: Any, *more: Any) -> None:
        options, task = (task, *more) if more else (None, task)
        make(self, task)
        if more:
            self.args = options

    @functools.wraps(build)
    def build_criterion(cls: type, cfg: Any, task: Any) -> Any:
        if list(inspect.signature(cls).parameters) == ["args", "task"]:
            return cls(cfg, task)
        return build(cls, cfg, task)

    criterion.__init__ = __init__
    criterion.build_criterion = classmethod(build_criterion)


@patch(
    "fairseq.criterions",
    because="fairseq 0.10 changed how criteria are made: those for 0.9 that derive from one of "
    "fairseq's fail with 'missing required positional arguments'. Those for 0.10 that derive from "
    "SentencePredictionCriterion, MaskedLmLoss or CtcCriterion fail with 'takes 3 positional "
    "arguments'",
)
def criteria_that_derive_have_their_options(module: PatchedModule) -> None:
    """Let criteria of fairseq be made with the options and the task, by those that derive."""
    for criterion in module.CRITERION_REGISTRY.values():
        if "__init__" in vars(criterion):
            take_options_and_task(criterion)


# {criterion with a dataclass: the single options that it took after the task in fairseq 0.10}
SINGLE_OPTIONS = {
    "CtcCriterion": ("wer_args", "zero_infinity", "sentence_avg", "remove_bpe"),
    "MaskedLmLoss": ("tpu",),
    "SentencePredictionCriterion": ("classification_head_name", "regression_target"),
}
RENAMED = {"remove_bpe": "post_process"}  # None stood for the default


def take_options_and_task(criterion: Any) -> None:
    """Let a criterion of fairseq be made as those for 0.9 and 0.10 do that derive from it.

    0.9 gave `(args, task)`; 0.10 the task and single options, which a dataclass holds today.
    """
    stock = criterion.__init__
    parameters = list(inspect.signature(stock).parameters.values())[1:]  # without self
    singles = SINGLE_OPTIONS.get(criterion.__name__, ())

    @functools.wraps(stock)
    def __init__(self: Any, *values: Any, **options: Any) -> None:
        if singles and "cfg" not in options and (set(singles) & set(options) or is_task(values)):
            named = {**dict(zip(("task", *singles), values)), **options}
            task = named.pop("task")
            stock(self, with_single_options(vars(criterion)["__dataclass"], named), task)
            return
        # `cfg, task` of today has the same order
        if options or len(values) != 2 or not isinstance(values[0], argparse.Namespace):
            stock(self, *values, **options)
            return
        args, task = values
        named = {"cfg": args, "task": task}
        named.update(
            (parameter.name, getattr(args, parameter.name))
            for parameter in parameters
            if parameter.name not in named and hasattr(args, parameter.name)
        )
        names = {parameter.name for parameter in parameters}
        stock(self, **{name: value for name, value in named.items() if name in names})
        self.args = args

    criterion.__init__ = __init__


def is_task(values: tuple[Any, ...]) -> bool:
    """True if the first of the values is a task."""
    from fairseq.tasks import FairseqTask

    return isinstance(values[0] if values else None, FairseqTask)


def with_single_options(dataclass: Any, named: dict[str, Any]) -> Any:
    """Return the options of a criterion, the named ones with these values, the others by default.

    Raises TypeError for a name that the criterion does not have.
    """
    cfg = dataclass()
    for former, value in named.items():
        name = RENAMED.get(former, former)
        if former in RENAMED and value is None:
            continue
        if not hasattr(cfg, name):
            raise TypeError(f"{dataclass.__name__} has no option {name!r}")
        setattr(cfg, name, value)
    return cfg


@patch(
    "fairseq.registry",
    because="fairseq 0.12 dropped registry.set_defaults: programs for 0.9 and 0.10 that make "
    "optimizers or criteria of incomplete options fail with \"has no attribute 'set_defaults'\"",
)
def missing_options_are_set(module: PatchedModule) -> None:
    """Give the module the function that sets what `add_args` of a class declares."""

    def set_defaults(args: argparse.Namespace, cls: Any) -> None:
        parser = argparse.ArgumentParser(argument_default=argparse.SUPPRESS, allow_abbrev=False)
        getattr(cls, "add_args", lambda parser: None)(parser)
        for action in parser._actions:
            if argparse.SUPPRESS not in (action.dest, action.default):
                vars(args).setdefault(action.dest, action.default)

    module.set_defaults = set_defaults
