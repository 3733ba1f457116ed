"""Updates of several batches (--update-freq) of which a worker has no last one."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from .patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.trainer import Trainer


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: with several workers and --update-freq, a worker whose last batch of "
    "an epoch is missing adds the gradients of its others but not their number of tokens: the "
    "update is too large, and the log lacks them",
)
def missing_batches_count_alone(module: PatchedModule) -> None:
    """Leave batches that are missing out of an update to which the worker has others."""
    trainer = module.Trainer
    stock = trainer.train_step

    @functools.wraps(stock)
    def train_step(self: Trainer, samples: list[Any], raise_oom: bool = False) -> Any:
        # fairseq takes part in the workers' exchange at the last batch, whichever it is; without
        # any, it runs a batch whose gradients are zero
        present = [sample for sample in samples if sample is not None and len(sample) > 0]
        return stock(self, present or samples, raise_oom)

    trainer.train_step = train_step
