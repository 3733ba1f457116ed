"""--stop-min-lr, --stop-time-hours and --max-epoch end a training when it is over, and save it."""

from __future__ import annotations

import copy
import functools
import logging
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from .after_loading import CheckpointLoading, after_loading

if TYPE_CHECKING:
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.tasks import FairseqTask
    from fairseq.trainer import Trainer

logger = logging.getLogger(__name__)


class RisingRate(float):
    """A learning rate that is no reason to stop: it rises until the end of the warm-up."""

    def __le__(self, other: float) -> bool:
        return False


def _is_warming_up(trainer: Trainer) -> bool:
    """True if the next update still belongs to the warm-up of the schedule."""
    schedule = trainer.lr_scheduler
    options = getattr(schedule, "cfg", None)
    # tri_stage computes its steps
    steps = getattr(schedule, "warmup_steps", getattr(options, "warmup_updates", 0))
    return trainer.get_num_updates() < (steps or 0)


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: with --stop-min-lr, a warm-up from 0, the default of inverse_sqrt and "
    "others, ends the training before its first update",
)
def warm_ups_are_finished(module: PatchedModule) -> None:
    """Let the training loop compare with --stop-min-lr from the end of the warm-up on."""
    trainer = module.Trainer
    get_lr, lr_step = trainer.get_lr, trainer.lr_step

    def _compared(self: Trainer, rate: Any) -> Any:
        return RisingRate(rate) if _is_warming_up(self) else rate

    @functools.wraps(get_lr)
    def current_lr(self: Trainer) -> Any:
        return _compared(self, get_lr(self))

    @functools.wraps(lr_step)
    def step_of_epoch(self: Trainer, epoch: int, val_loss: float | None = None) -> Any:
        return _compared(self, lr_step(self, epoch, val_loss))

    trainer.get_lr, trainer.lr_step = current_lr, step_of_epoch


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: --stop-time-hours counts the hours of the training that made the file "
    "of --finetune-from-model",
)
def hours_are_of_this_training(module: PatchedModule) -> None:
    """Count from 0 where the meters begin anew: --finetune-from-model and --reset-meters."""

    def forget_hours(trainer: Trainer, loading: CheckpointLoading) -> None:
        if loading.reset_meters:
            trainer._previous_training_time = 0

    after_loading(module.Trainer, forget_hours)


@patch(
    "fairseq_cli.train",
    because="fairseq 0.12.2: --max-epoch 5 --save-interval 2 trains a fifth epoch and saves "
    "nothing of it; --max-update saves in any case",
)
def last_epochs_are_saved(module: PatchedModule) -> None:
    """Save the end of the last epoch, whatever the interval."""
    stock = module.validate_and_save

    @functools.wraps(stock)
    def validate_and_save(
        cfg: FairseqConfig,
        trainer: Trainer,
        task: FairseqTask,
        epoch_itr: Any,
        valid_subsets: list[str],
        end_of_epoch: bool,
    ) -> Any:
        last = cfg.optimization.max_epoch
        if end_of_epoch and last and epoch_itr.epoch >= last:
            cfg = copy.deepcopy(cfg)
            cfg.checkpoint.save_interval = 1
        return stock(cfg, trainer, task, epoch_itr, valid_subsets, end_of_epoch)

    module.validate_and_save = validate_and_save


@patch(
    "fairseq_cli.train",
    because="fairseq 0.12.2: a training that --max-update or --stop-time-hours has ended makes one "
    "more update, and saves it, each time that it is started again",
)
def ended_trainings_stay_as_they_are(module: PatchedModule) -> None:
    """Train no epoch if the checkpoint is at the end of the run."""
    stock = module.train

    @functools.wraps(stock)
    def train(cfg: FairseqConfig, trainer: Trainer, task: FairseqTask, epoch_itr: Any) -> Any:
        limits, updates = cfg.optimization, trainer.get_num_updates()
        hours = trainer._previous_training_time / 3600  # of the checkpoint
        for name, limit, done in (
            ("--max-update", limits.max_update, updates),
            ("--stop-time-hours", limits.stop_time_hours, hours),
        ):
            if limit > 0 and done >= limit:
                logger.info(f"the training is at its end ({name} {limit}): nothing is trained")
                return [None], True
        return stock(cfg, trainer, task, epoch_itr)

    module.train = train
