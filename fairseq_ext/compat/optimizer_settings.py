"""Settings of an optimiser that a resumed training takes from its checkpoint."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any, Mapping

from .patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.optim import FairseqOptimizer
    from fairseq.trainer import Trainer

logger = logging.getLogger(__name__)


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: --weight-decay, --adam-betas and other settings of the optimiser have "
    "no effect on a training that goes on from a checkpoint, and nothing says so",
)
def kept_settings_are_named(module: PatchedModule) -> None:
    """Warn of settings that differ from those of the checkpoint, which remain."""
    trainer = module.Trainer
    load = trainer.load_checkpoint

    @functools.wraps(load)
    def load_checkpoint(
        self: Trainer,
        filename: str,
        reset_optimizer: bool = False,
        reset_lr_scheduler: bool = False,
        optimizer_overrides: dict[str, Any] | None = None,
        reset_meters: bool = False,
    ) -> Any:
        extra_state = load(
            self, filename, reset_optimizer, reset_lr_scheduler, optimizer_overrides, reset_meters
        )
        if extra_state is not None and not reset_optimizer and self.is_data_parallel_master:
            overrides = optimizer_overrides or {}
            for name, (stored, option) in unused_settings(self.optimizer).items():
                if name not in overrides:
                    logger.warning(
                        "the optimiser goes on with %s %r of %s, not with %r; to change it, add "
                        '--optimizer-overrides "{%r: %r}"',
                        *(name, stored, filename, option, name, option),
                    )
        return extra_state

    trainer.load_checkpoint = load_checkpoint


def unused_settings(optimizer: FairseqOptimizer) -> dict[str, tuple[Any, Any]]:
    """Return {name: (value in use, value of the options)} where they differ.

    The learning rate is left out: the scheduler sets it.
    """
    try:
        options: Mapping[str, Any] = optimizer.optimizer_config
    except NotImplementedError:  # several optimisers, each with options of its own
        return {}
    group = next(iter(optimizer.param_groups))
    settings = {
        name: (_plain(group[name]), _plain(option))
        for name, option in options.items()
        if name in group and name != "lr"
    }
    return {name: both for name, both in settings.items() if both[0] != both[1]}


def _plain(setting: Any) -> Any:
    """Return a list as the tuple that it stands for."""
    return tuple(setting) if isinstance(setting, list) else setting
