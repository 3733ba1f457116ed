"""--optimizer composite: an optimiser and a schedule for each group of parameters."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.optim.composite import CompositeLRScheduler, FairseqCompositeOptimizer
    from fairseq.optim.lr_scheduler.pass_through import PassThroughScheduleSchedule


@patch(
    "fairseq.optim.composite",
    because="fairseq 0.12.2: all optimizers of the kind composite share one table of their "
    "groups, so that the second training of a process takes groups of the first",
)
def groups_are_of_one_optimizer(module: PatchedModule) -> None:
    """Give each optimizer its own tables."""
    optimizer = module.FairseqCompositeOptimizer
    build = optimizer.__init__

    @functools.wraps(build)
    def __init__(self: FairseqCompositeOptimizer, cfg: Any, params: Any) -> None:
        self.optimizers, self.lr_schedulers = {}, {}
        build(self, cfg, params)

    optimizer.__init__ = __init__


@patch(
    "fairseq.optim.composite",
    "fairseq.optim.lr_scheduler.pass_through",
    because="fairseq 0.12.2: the schedules of --optimizer composite do not learn of validations: "
    "reduce_lr_on_plateau never reduces the rate",
)
def groups_learn_of_validations(module: PatchedModule) -> None:
    """Tell the schedule of each group the end of an epoch and the loss of its validation."""
    if hasattr(module, "CompositeLRScheduler"):
        module.CompositeLRScheduler.step = _step_each
    else:
        module.PassThroughScheduleSchedule.step = _step_delegated


def _step_each(self: CompositeLRScheduler, epoch: int, val_loss: float | None = None) -> None:
    """Call the schedules at the end of an epoch."""
    for schedule in self.lr_schedulers.values():
        schedule.step(epoch, val_loss)


def _step_delegated(
    self: PassThroughScheduleSchedule, epoch: int, val_loss: float | None = None
) -> Any:
    """Call the schedule of the optimizer at the end of an epoch."""
    return self.optimizer.lr_scheduler.step(epoch, val_loss)
