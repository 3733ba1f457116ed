"""Sets of which each epoch draws other items, such as those of --multilang-sampling-alpha."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    import numpy as np
    from fairseq.data import FairseqDataset, ResamplingDataset, SortDataset
    from fairseq.tasks import FairseqTask
    from numpy.typing import NDArray

# tasks that draw from languages: {module: class}
TASKS = {
    "fairseq.tasks.multilingual_masked_lm": "MultiLingualMaskedLMTask",
    "fairseq.tasks.multilingual_denoising": "MultilingualDenoisingTask",
    "fairseq.tasks.multilingual_language_modeling": "MultilingualLanguageModelingTask",
}


@patch(
    "fairseq.tasks.multilingual_masked_lm",
    "fairseq.tasks.multilingual_denoising",
    "fairseq.data.audio.speech_to_text_dataset",
    "fairseq.data.audio.speech_to_text_joint_dataset",
    because="fairseq 0.12.2: what is neither to grow nor to shrink, as with the default "
    "--multilang-sampling-alpha 1.0, is drawn with replacement: each epoch leaves out a third",
)
def whole_sets_are_seen_once(module: PatchedModule) -> None:
    """Draw with replacement only what is to grow, as multilingual_language_modeling does."""
    stock = module.ResamplingDataset

    def resampled(
        dataset: FairseqDataset,
        weights: Any = None,
        replace: bool = True,
        size_ratio: float = 1.0,
        *options: Any,
        **named: Any,
    ) -> ResamplingDataset:
        """Return the set with this ratio, up to the rounding error of what computes it."""
        ratio = round(float(size_ratio), 8)
        result: ResamplingDataset = stock(dataset, weights, ratio > 1, ratio, *options, **named)
        return result

    module.ResamplingDataset = resampled


@patch(
    *TASKS,
    because="fairseq 0.12.2: multilingual pretraining orders the items of all epochs by the "
    "lengths of those that the first epoch of the process has drawn: later batches mix lengths, "
    "and a run that goes on has others than without the interruption",
)
def drawn_items_are_ordered(module: PatchedModule) -> None:
    """Order the training set by what the epoch has drawn."""
    task = getattr(module, TASKS[module.__name__])
    load, order_of_epochs = task.load_dataset, _order_of_epochs(module)

    @functools.wraps(load)
    def load_dataset(
        self: FairseqTask, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any
    ) -> None:
        load(self, split, epoch=epoch, combine=combine, **kwargs)
        if split == self.args.train_subset:  # type: ignore[attr-defined]
            dataset: SortDataset = self.datasets[split]
            self.datasets[split] = order_of_epochs(dataset, self.args.seed, epoch)

    task.load_dataset = load_dataset


def _order_of_epochs(module: PatchedModule) -> type[SortDataset]:
    """Return a class of data sets: the items of another SortDataset in the order of the epoch."""

    class OrderOfEpochs(module.SortDataset):  # type: ignore[misc, name-defined]
        def __init__(self, stock: SortDataset, seed: int, epoch: int) -> None:
            super().__init__(stock.dataset, stock.sort_order)
            self.seed, self.epoch = seed, epoch

        def set_epoch(self, epoch: int) -> None:
            super().set_epoch(epoch)
            self.epoch = epoch

        def ordered_indices(self) -> NDArray[np.int64]:
            """Return the numbers of the items by length, in random order among equal ones."""
            with module.data_utils.numpy_seed(self.seed + self.epoch):
                shuffle = module.np.random.permutation(len(self))
            order: NDArray[np.int64] = module.np.lexsort([shuffle, self.sizes])
            return order

    return OrderOfEpochs
