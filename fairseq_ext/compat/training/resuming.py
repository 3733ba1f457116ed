"""A training that was interrupted goes on as if it had not been.

fairseq 0.12.2 restores parameters, optimiser and position in the data (`epoch_positions.py`). It
loses how long `--patience` has waited, and when `--ema-update-freq` has last averaged. At the
beginning of an epoch it also loses what was measured since the last line of the log, and the
validation that the learning rate depends on.
"""

from __future__ import annotations

import functools
import logging
import sys
from typing import TYPE_CHECKING, Any, Callable

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after
from .after_loading import CheckpointLoading, after_loading

if TYPE_CHECKING:
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import ReduceLROnPlateauLRSchedule
    from fairseq.trainer import Trainer

logger = logging.getLogger(__name__)

# attributes of fairseq's function `should_stop_early`
PATIENCE_STATE = ("best", "num_runs")


def _early_stop() -> Callable[..., bool] | None:
    """Return the function that counts validations for --patience in attributes of its own."""
    return getattr(sys.modules.get("fairseq_cli.train"), "should_stop_early", None)


def _patience() -> dict[str, Any]:
    """Return what it counts: {} before the first validation, and in other programs."""
    function = _early_stop()
    return {name: getattr(function, name) for name in PATIENCE_STATE if hasattr(function, name)}


def _restore_patience(state: dict[str, Any]) -> None:
    """Let it go on counting; a program other than fairseq-train counts by itself."""
    function = _early_stop()
    if function is not None:
        for name, value in state.get("patience", {}).items():
            setattr(function, name, value)


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: a run that goes on at the beginning of an epoch has forgotten what it "
    "has not logged yet and the validation before, and every run how long --patience and "
    "--ema-update-freq have waited",
)
def resumed_trainings_forget_nothing(module: PatchedModule) -> None:
    """Store what is lost in the checkpoint and restore it."""
    save = module.Trainer.save_checkpoint

    @functools.wraps(save)
    def save_checkpoint(self: Trainer, filename: str, extra_state: dict[str, Any]) -> Any:
        waited = _patience()
        return save(self, filename, {**extra_state, **({"patience": waited} if waited else {})})

    def restore(trainer: Trainer, loading: CheckpointLoading) -> None:
        state = loading.extra_state
        if state is None:
            return
        if trainer.cfg.ema.store_ema:
            # averages are taken at multiples of the frequency
            counted = trainer.get_num_updates() % trainer.cfg.ema.ema_update_freq
            trainer.ema.update_freq_counter = counted
        # with either option fairseq forgets the best score, with which patience compares
        if not (loading.reset_meters or loading.reset_optimizer):
            _restore_patience(state)
        # 0 updates of an epoch: fairseq wrote the checkpoint after the last one of the epoch before
        position = state.get("train_iterator") or {}
        if position.get("version", 1) < 2 or position["iterations_in_epoch"]:
            return
        if not loading.reset_meters and "train_inner" in state.get("metrics", {}):
            # fairseq restores all meters or none; those of the epoch do begin anew
            inner = {"train_inner": state["metrics"]["train_inner"]}
            module.metrics.load_state_dict(inner)
        if not (loading.reset_optimizer or loading.reset_lr_scheduler):
            # the checkpoint was written before the scheduler saw this validation
            trainer.lr_step(position["epoch"] - 1, state.get("val_loss"))

    module.Trainer.save_checkpoint = save_checkpoint
    after_loading(module.Trainer, restore)


@patch(
    "fairseq.optim.lr_scheduler.reduce_lr_on_plateau",
    because="fairseq 0.12.2: --lr-patience begins to wait anew when a run is resumed",
)
def plateaus_are_remembered(module: PatchedModule) -> None:
    """Keep the number of bad validations in the checkpoint."""
    schedule = module.ReduceLROnPlateauLRSchedule
    save = schedule.state_dict

    def state_dict(self: ReduceLROnPlateauLRSchedule) -> dict[str, Any]:
        return {**save(self), "num_bad_epochs": self.lr_scheduler.num_bad_epochs}

    def restore(self: ReduceLROnPlateauLRSchedule, state_dict: dict[str, Any]) -> None:
        # 0: written without this patch
        self.lr_scheduler.num_bad_epochs = state_dict.get("num_bad_epochs", 0)

    schedule.state_dict = state_dict
    call_after(schedule, "load_state_dict", restore)


@patch(
    "fairseq_cli.train",
    because="fairseq 0.12.2 logs what was not measured since the last line of the log as null, but "
    "not in a resumed run",
)
def only_what_was_measured_is_logged(module: PatchedModule) -> None:
    """Leave values that are None out of the log."""
    training, validation = module.get_training_stats, module.get_valid_stats

    def get_training_stats(stats: dict[str, Any]) -> dict[str, Any]:
        return training(_measured(stats))

    def get_valid_stats(
        cfg: FairseqConfig, trainer: Trainer, stats: dict[str, Any], tracking_best: bool
    ) -> dict[str, Any]:
        return validation(cfg, trainer, _measured(stats), tracking_best)

    module.get_training_stats, module.get_valid_stats = get_training_stats, get_valid_stats


def _measured(stats: dict[str, Any]) -> dict[str, Any]:
    """Return `stats` without the values that are None; it is changed in place."""
    # a list first: the dictionary changes while it is walked through
    for name in [name for name, value in stats.items() if value is None]:
        del stats[name]
    return stats


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: a run that goes on from a checkpoint of --no-save-optimizer-state "
    "silently begins anew with its optimizer, its learning rate and the number of its updates",
)
def missing_optimizer_states_are_named(module: PatchedModule) -> None:
    """Warn of a checkpoint without the state of an optimizer."""

    def warn(trainer: Trainer, loading: CheckpointLoading) -> None:
        if loading.extra_state is None or loading.reset_optimizer or trainer.get_num_updates():
            return
        before = trainer._optim_history[-1].get("num_updates", 0)
        if before:
            logger.warning(
                f"{loading.filename} has no state of the optimizer (--no-save-optimizer-state): "
                f"the optimizer, the learning rate and the number of updates, {before} before, "
                "begin anew"
            )

    after_loading(module.Trainer, warn)
