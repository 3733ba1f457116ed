"""Optimizers, learning rates and criteria that were written for earlier versions of fairseq."""

from __future__ import annotations

import argparse
import functools
import inspect
from typing import Any

from ..patch_registry import PatchedModule, patch


def keep_options(base: Any) -> None:
    """Keep the options as `args` too, where classes without a dataclass look for them."""
    stock = base.__init__

    @functools.wraps(stock)
    def __init__(self: Any, cfg: Any, *more: Any, **options: Any) -> None:
        stock(self, cfg, *more, **options)
        # a class may have a property of this name
        if isinstance(cfg, argparse.Namespace) and not hasattr(type(self), "args"):
            self.args = cfg

    base.__init__ = __init__


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
