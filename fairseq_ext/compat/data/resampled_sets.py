"""Sets of which each epoch draws other items, such as those of --multilang-sampling-alpha."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after

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
    "fairseq.data.resampling_dataset",
    because="fairseq 0.12.2: multilingual_language_modeling with its default "
    "--multilang-sampling-alpha 1.0 ends in an AssertionError without a message",
)
def data_may_be_resampled_whole(module: PatchedModule) -> None:
    """Draw all of a set without replacement, in a new order for each epoch."""
    dataset_class = module.ResamplingDataset
    build = dataset_class.__init__

    @functools.wraps(build)
    def __init__(self: Any, dataset: Any, *args: Any, **options: Any) -> None:
        settings = inspect.signature(build).bind(self, dataset, *args, **options)
        settings.apply_defaults()
        if not settings.arguments["replace"] and settings.arguments["size_ratio"] == 1:
            # as many, rounded up, and below the bound that fairseq checks
            settings.arguments["size_ratio"] = 1 - 2**-53
        build(*settings.args, **settings.kwargs)

    dataset_class.__init__ = __init__


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
    "fairseq.data.resampling_dataset",
    because="fairseq 0.12.2: ResamplingDataset, where no other set is around it, filters what it "
    "has drawn by the lengths of other items, those with the same numbers in the whole set, has "
    "no order of pairs, and ends in \"'bool' object is not callable\" where batches are made",
)
def drawn_items_have_their_lengths(module: PatchedModule) -> None:
    """Filter, order and batch the items by their own lengths."""
    drawn, base = module.ResamplingDataset, module.BaseWrapperDataset.__base__

    def filter_indices_by_size(self: ResamplingDataset, indices: Any, max_sizes: Any) -> Any:
        """Return the numbers of items that are short enough, (M), and a list of the others."""
        indices = module.np.asarray(indices)
        originals = self._cur_indices.array[indices]
        short_enough, _ = self.dataset.filter_indices_by_size(originals, max_sizes)
        fits = module.np.isin(originals, short_enough)
        return indices[fits], indices[~fits].tolist()

    def num_tokens_vec(self: ResamplingDataset, indices: Any) -> Any:
        return self.dataset.num_tokens_vec(self._cur_indices.array[indices])

    def attr(self: ResamplingDataset, attr: str, index: int) -> Any:
        return self.dataset.attr(attr, self._cur_indices.array[index])

    def ordered_indices(self: ResamplingDataset) -> NDArray[np.int64]:
        """Return the numbers of the items by length; of pairs, first by that of the source."""
        keys = [module.np.arange(len(self))]
        if self.batch_by_size:
            sizes = self.sizes
            # (N) of lines, (N, 2) of pairs, or a list of several (N)
            columns = sizes if isinstance(sizes, list) else sizes.reshape(len(self), -1).T
            keys += reversed(list(columns))
        order: NDArray[np.int64] = module.np.lexsort(keys)
        return order

    drawn.filter_indices_by_size, drawn.num_tokens_vec = filter_indices_by_size, num_tokens_vec
    drawn.attr, drawn.ordered_indices = attr, ordered_indices
    # the constructor sets an attribute of the name of the method
    drawn.batch_by_size = property(
        lambda self: BatchBySize(self.__dict__["batch_by_size"], base.batch_by_size, self),
        lambda self, is_ordered: self.__dict__.update(batch_by_size=is_ordered),
    )


class BatchBySize:
    """The option and the method that share a name: true if items are ordered by length.

    Args:
        is_ordered: the option.
        method: makes batches when this object is called.
        dataset: its first argument.
    """

    def __init__(self, is_ordered: bool, method: Callable[..., Any], dataset: Any) -> None:
        self._is_ordered, self._method, self._dataset = is_ordered, method, dataset

    def __bool__(self) -> bool:
        return self._is_ordered

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._method(self._dataset, *args, **options)


@patch(
    *TASKS,
    because="fairseq 0.12.2: multilingual pretraining orders the items of all epochs by the "
    "lengths of those that the first epoch of the process has drawn: later batches mix lengths, "
    "and a run that goes on has others than without the interruption",
)
def drawn_items_are_ordered(module: PatchedModule) -> None:
    """Order the training set by what the epoch has drawn."""
    task = getattr(module, TASKS[module.__name__])
    order_of_epochs = _order_of_epochs(module)

    def order(self: FairseqTask, split: str, epoch: int = 1, *more: Any, **options: Any) -> None:
        if split == self.args.train_subset:  # type: ignore[attr-defined]
            dataset: SortDataset = self.datasets[split]
            self.datasets[split] = order_of_epochs(dataset, self.args.seed, epoch)

    call_after(task, "load_dataset", order)


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
