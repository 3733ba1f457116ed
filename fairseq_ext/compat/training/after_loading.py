"""What a trainer does after it has read its checkpoint."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairseq.trainer import Trainer


@dataclass(frozen=True)
class CheckpointLoading:
    """How `Trainer.load_checkpoint` was called, and what it returned.

    filename: the checkpoint. extra_state: what it holds beside model and optimiser; None where the
    file does not exist. reset_*: the options of these names, and --finetune-from-model sets them
    all. optimizer_overrides: {name: value} of --optimizer-overrides.
    """

    filename: str
    extra_state: dict[str, Any] | None
    reset_optimizer: bool = False
    reset_lr_scheduler: bool = False
    optimizer_overrides: dict[str, Any] = field(default_factory=dict)
    reset_meters: bool = False


def after_loading(
    trainer: type[Trainer], follow: Callable[[Trainer, CheckpointLoading], None]
) -> None:
    """Call `follow` (trainer, loading) whenever a trainer of this class has read a checkpoint."""
    load = trainer.load_checkpoint

    @functools.wraps(load)
    def load_checkpoint(
        self: Trainer,
        filename: str,
        reset_optimizer: bool = False,
        reset_lr_scheduler: bool = False,
        optimizer_overrides: dict[str, Any] | None = None,
        reset_meters: bool = False,
    ) -> dict[str, Any] | None:
        extra_state: dict[str, Any] | None = load(
            self, filename, reset_optimizer, reset_lr_scheduler, optimizer_overrides, reset_meters
        )
        resets = (reset_optimizer, reset_lr_scheduler, optimizer_overrides or {}, reset_meters)
        follow(self, CheckpointLoading(filename, extra_state, *resets))
        return extra_state

    trainer.load_checkpoint = load_checkpoint
