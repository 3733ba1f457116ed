"""Schedules of the learning rate: what they make of --lr and --phase-ratio."""

from __future__ import annotations

import copy
import functools
import math
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from .after_loading import CheckpointLoading, after_loading

if TYPE_CHECKING:
    from fairseq.optim import FairseqOptimizer
    from fairseq.optim.lr_scheduler.polynomial_decay_schedule import PolynomialDecayLRSchedule
    from fairseq.optim.lr_scheduler.tri_stage_lr_scheduler import TriStageLRSchedule
    from fairseq.trainer import Trainer


@patch(
    "fairseq.optim.lr_scheduler.polynomial_decay_schedule",
    because="fairseq 0.12.2: of --lr A,B,C the first epoch has B: A is never used",
)
def rates_begin_with_the_first(module: PatchedModule) -> None:
    """Give epoch N the N-th rate of --lr, as --lr-scheduler fixed does."""
    schedule = module.PolynomialDecayLRSchedule
    stock = schedule.get_next_lr

    @functools.wraps(stock)
    def get_next_lr(self: PolynomialDecayLRSchedule, epoch: int) -> float:
        anneal = self.cfg.force_anneal
        if anneal is not None and epoch >= anneal:
            return float(stock(self, epoch))
        return float(self.cfg.lr[min(epoch, len(self.cfg.lr)) - 1])

    schedule.get_next_lr = get_next_lr


@patch(
    "fairseq.optim.lr_scheduler.tri_stage_lr_scheduler",
    because="fairseq 0.12.2: --phase-ratio '(0.7, 0.2, 0.1)' ends in 'phase ratios must add up to "
    "1', because their sum differs from 1 in its 16th digit",
)
def ratios_are_added_exactly(module: PatchedModule) -> None:
    """Add the ratios without rounding errors between them."""
    module.sum = math.fsum  # the module's only sum


@patch(
    "fairseq.optim.lr_scheduler.tri_stage_lr_scheduler",
    because="fairseq 0.12.2: tri_stage without a decay, as with --phase-ratio '(0.1, 0.9, 0)', "
    "ends in ZeroDivisionError",
)
def rates_need_no_decay(module: PatchedModule) -> None:
    """Keep the rate of --hold-steps where no --decay-steps follow."""
    schedule = module.TriStageLRSchedule
    build = schedule.__init__

    @functools.wraps(build)
    def __init__(self: TriStageLRSchedule, cfg: Any, optimizer: FairseqOptimizer) -> None:
        warmup, hold, decay = _steps_of_stages(cfg)
        if decay or not warmup + hold:
            build(self, cfg, optimizer)
            return
        cfg = copy.copy(cfg)
        cfg.phase_ratio = None
        cfg.warmup_steps, cfg.hold_steps, cfg.decay_steps = warmup, hold, 1
        build(self, cfg, optimizer)
        self.decay_steps, self.decay_factor, self.final_lr = 0, 0.0, self.peak_lr

    schedule.__init__ = __init__


def _steps_of_stages(cfg: Any) -> tuple[int, int, int]:
    """Return the updates of warm-up, holding and decay."""
    ratio = cfg.phase_ratio
    if ratio is None:
        return cfg.warmup_steps, cfg.hold_steps, cfg.decay_steps
    if math.fsum(ratio) != 1 or cfg.max_update <= 0:
        return 0, 0, 0  # fairseq refuses it
    warmup, hold, decay = (int(cfg.max_update * part) for part in ratio)
    return warmup, hold, decay


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: with --lr-scheduler reduce_lr_on_plateau, --reset-lr-scheduler goes "
    "on with the rate of the checkpoint, whatever --lr",
)
def plateaus_begin_anew_with_lr(module: PatchedModule) -> None:
    """Begin with --lr where --reset-lr-scheduler keeps the optimiser's state."""

    def begin_with_lr(trainer: Trainer, loading: CheckpointLoading) -> None:
        schedule = getattr(trainer.cfg.lr_scheduler, "_name", None)
        if loading.extra_state is None or not loading.reset_lr_scheduler:
            return
        if schedule == "reduce_lr_on_plateau":
            # the state of the optimiser has brought its rate; a warm-up sets its own
            trainer.optimizer.set_lr(trainer.cfg.optimization.lr[0])
            trainer.lr_step_update()

    after_loading(module.Trainer, begin_with_lr)
