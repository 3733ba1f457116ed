"""Settings of an optimiser that a resumed training takes from its checkpoint."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Mapping

from ..patch_registry import PatchedModule, patch
from ..training.after_loading import CheckpointLoading, after_loading

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

    def warn(trainer: Trainer, loading: CheckpointLoading) -> None:
        if loading.extra_state is None or loading.reset_optimizer:
            return
        if not trainer.is_data_parallel_master:
            return
        for name, (stored, option) in unused_settings(trainer.optimizer).items():
            if name not in loading.optimizer_overrides:
                logger.warning(
                    "the optimiser goes on with %s %r of %s, not with %r; to change it, add "
                    '--optimizer-overrides "{%r: %r}"',
                    *(name, stored, loading.filename, option, name, option),
                )

    after_loading(module.Trainer, warn)


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
