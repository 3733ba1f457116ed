"""Several workers share an epoch whose number of batches is no multiple of theirs."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.data.iterators import EpochBatchIterator
    from fairseq.trainer import Trainer
    from torch import nn


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


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: with --update-freq and --ddp-backend pytorch_ddp, the gradients of "
    "the model are exchanged at the last batch of an update, and those of a criterion with "
    "parameters at every batch: workers with fewer batches than others would never end",
)
def criteria_exchange_with_the_model(module: PatchedModule) -> None:
    """Exchange the criterion's gradients once in an update, too."""
    trainer = module.Trainer
    stock = trainer.model

    def model(self: Trainer) -> nn.Module:
        """Return the trainer's model; its ``no_sync`` is the criterion's too."""
        # fairseq's property builds the wrapper when it is asked first, and keeps it
        is_first = self._wrapped_model is None
        has_parameters = module.utils.has_parameters(self._criterion)
        if is_first and has_parameters and self.use_distributed_wrapper and not self.is_fsdp:
            from .reduced_model import ModelWithCriterion

            # set after the getter has set it to what is inside
            self._wrapped_model = ModelWithCriterion(stock.fget(self), lambda: self.criterion)
        return stock.fget(self)

    trainer.model = property(model)


@patch(
    "fairseq.data.iterators",
    because="fairseq 0.12.2: --grouped-shuffling leaves out the batches that are too few for all "
    "workers, in every epoch the same, with the longest sentences",
)
def last_groups_are_trained(module: PatchedModule) -> None:
    """Let the incomplete group end the epoch."""
    iterator = module.EpochBatchIterator
    stock = iterator.ordered_batches

    @functools.wraps(stock)
    def ordered_batches(
        self: EpochBatchIterator, epoch: int, fix_batches_to_gpus: bool, shuffle: bool
    ) -> Any:
        """Return the batches of this worker."""
        batches = stock(self, epoch, fix_batches_to_gpus, shuffle)
        rest = len(self.frozen_batches) % self.num_shards
        if not self.grouped_shuffling or not shuffle or not rest or self._supports_prefetch:
            return batches
        last = self.frozen_batches[-rest:]
        # []: fairseq's batch for the workers that have none
        return [*batches, last[self.shard_id] if self.shard_id < rest else []]

    iterator.ordered_batches = ordered_batches
