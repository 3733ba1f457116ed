"""Items are of the epoch: those of processes that load data, and those that are remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after

if TYPE_CHECKING:
    from fairseq.data import FairseqDataset, LRUCacheDataset
    from fairseq.data.iterators import EpochBatchIterator


@patch(
    "fairseq.data.iterators",
    because="fairseq 0.12.2: with --num-workers 1, its default, or more, the processes stay in the "
    "first epoch of a run: masked_lm masks the same tokens in every epoch, and denoising has the "
    "same noise",
)
def workers_know_the_epoch(module: PatchedModule) -> None:
    """Start processes anew for each epoch where the items of a dataset may depend on it.

    They are copies of this process. What `set_epoch` changes here later, they do not see.
    """
    from fairseq.data.fairseq_dataset import EpochListening

    def choose(
        self: EpochBatchIterator, dataset: FairseqDataset, *args: Any, **options: Any
    ) -> None:
        listen = getattr(type(dataset), "set_epoch", EpochListening.set_epoch)
        if self.num_workers > 0 and listen is not EpochListening.set_epoch:
            self.reuse_dataloader = False

    call_after(module.EpochBatchIterator, "__init__", choose)


@patch(
    "fairseq.data.lru_cache_dataset",
    because="fairseq 0.12.2: with --num-workers 0, an item of masked_lm that was among the last "
    "ones of an epoch and is among the first of the next one has the masks of the epoch before",
)
def items_of_another_epoch_are_forgotten(module: PatchedModule) -> None:
    """Forget the last items when the epoch is set."""
    dataset = module.LRUCacheDataset
    base_class = module.BaseWrapperDataset

    def set_epoch(self: LRUCacheDataset, epoch: int) -> None:
        """Tell the dataset below the epoch."""
        base_class.set_epoch(self, epoch)
        dataset.__getitem__.cache_clear()

    dataset.set_epoch = set_epoch
