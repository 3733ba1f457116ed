"""translation_multi_simple_epoch: the batches of an epoch depend on its number alone.

fairseq 0.12.2 makes the order of a pass through the data with the number of the epoch in which the
process meets the pass first, and weighs the languages by the sizes of those data folders that the
process has seen. A run that was interrupted goes on with other batches.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..user_errors import OptionError

if TYPE_CHECKING:
    from fairseq.data.iterators import EpochBatchIterator
    from fairseq.data.multilingual.multilingual_data_manager import MultilingualDatasetManager
    from fairseq.data.multilingual.sampled_multi_epoch_dataset import SampledMultiEpochDataset
    from fairseq.tasks.translation_multi_simple_epoch import TranslationMultiSimpleEpochTask


@patch(
    "fairseq.data.multilingual.sampled_multi_epoch_dataset",
    because="fairseq 0.12.2: with --virtual-epoch-size, a run that goes on in the middle of a pass "
    "through the data draws the order of the pass anew: sentences come twice or never",
)
def passes_have_one_order(module: PatchedModule) -> None:
    """Begin with the first virtual epoch of the pass that an epoch belongs to."""
    dataset = module.SampledMultiEpochDataset
    stock = dataset._next_virtual_epoch

    @functools.wraps(stock)
    def _next_virtual_epoch(self: SampledMultiEpochDataset, epoch: int) -> None:
        earlier = (epoch - 1) % self.num_virtual_epochs
        if earlier and self._random_global_indices is None:
            stock(self, epoch - earlier)
        stock(self, epoch)

    dataset._next_virtual_epoch = _next_virtual_epoch


@patch(
    "fairseq.data.multilingual.multilingual_data_manager",
    because="fairseq 0.12.2: with several data folders, --sampling-method temperature depends on "
    "which of them this process has seen",
)
def ratios_count_all_folders(module: PatchedModule) -> None:
    """Read the sizes of all folders before the first epoch."""
    manager = module.MultilingualDatasetManager
    stock = manager.load_split_datasets

    @functools.wraps(stock)
    def load_split_datasets(
        self: MultilingualDatasetManager,
        split: str,
        training: bool,
        epoch: int = 1,
        combine: bool = False,
        shard_epoch: int | None = None,
        **kwargs: Any,
    ) -> Any:
        datasets, params = stock(self, split, training, epoch, combine, shard_epoch, **kwargs)
        if training and self.has_sharded_data(split) and self.args.sampling_method == "temperature":
            for (_, dataset), param in zip(datasets, params):
                _note_sizes(self, dataset, param, combine)
        return datasets, params

    manager.load_split_datasets = load_split_datasets


def _note_sizes(
    manager: MultilingualDatasetManager, dataset: Any, param: dict[str, Any], combine: bool
) -> None:
    """Tell the manager the number of sentences of a language pair in each of its folders."""
    split, key = param["split"], param["key"]
    folders = manager.get_data_paths_and_lang_pairs(split)[0][param["data_category"]].split(":")
    sizes = manager._training_data_sizes[key]
    for number in range(manager.get_split_num_data_shards(split)[key]):
        if folders[number] == param["data_path"]:
            sizes[number] = len(dataset)
        elif number not in sizes:
            other = {**param, "data_path": folders[number]}
            sizes[number] = len(manager.load_a_dataset(combine=combine, **other))


@patch(
    "fairseq.tasks.translation_multi_simple_epoch",
    because="fairseq 0.12.2: with --virtual-epoch-size and several data folders, the next folder "
    "comes one epoch late, unless the run was interrupted; with --sampling-method RoundRobin, all "
    "virtual epochs have the batches of the first one; --skip-remainder-batch, "
    "--grouped-shuffling and --data-buffer-size have no effect",
)
def folders_change_with_the_pass(module: PatchedModule) -> None:
    """Load the folder of the pass that an epoch belongs to; give it batches and options."""
    task = module.TranslationMultiSimpleEpochTask
    load, stock = task.load_dataset, task.get_batch_iterator

    @functools.wraps(load)
    def load_dataset(
        self: TranslationMultiSimpleEpochTask,
        split: str,
        epoch: int = 1,
        combine: bool = False,
        **kwargs: Any,
    ) -> None:
        virtual = self.args.virtual_epoch_size is not None and self.training
        if virtual and self.has_sharded_data(split) and split in self.datasets:
            number = self.data_manager.estimate_global_pass_epoch(epoch)
            if self.datasets[split].shard_epoch == number:
                return
            del self.datasets[split]  # or fairseq takes the folder that this dataset asks for
        load(self, split, epoch, combine, **kwargs)
        if virtual and self.has_sharded_data(split):
            _check_passes(self, self.datasets[split])

    @functools.wraps(stock)
    def get_batch_iterator(
        self: TranslationMultiSimpleEpochTask, *args: Any, **kwargs: Any
    ) -> EpochBatchIterator:
        method = self.args.sampling_method
        if method == "RoundRobin":  # stock gives all epochs the batches of the first one
            self.args.sampling_method = "concat"
        try:
            iterator = stock(self, *args, **kwargs)
        finally:
            self.args.sampling_method = method
        for option in ("skip_remainder_batch", "grouped_shuffling"):
            if option in kwargs:
                setattr(iterator, option, kwargs[option])
        if "data_buffer_size" in kwargs:
            iterator.buffer_size = min(kwargs["data_buffer_size"], 20)  # as in fairseq's own tasks
        return iterator

    task.load_dataset, task.get_batch_iterator = load_dataset, get_batch_iterator


def _check_passes(task: TranslationMultiSimpleEpochTask, dataset: SampledMultiEpochDataset) -> None:
    """Raise OptionError unless all folders have passes of one length."""
    size = task.args.virtual_epoch_size
    if task.args.virtual_data_size is None or dataset.sample_ratios is None:
        raise OptionError(
            f"--virtual-epoch-size {size} is not allowed with several data folders as they are: a "
            "run that goes on could not tell which folder comes next; allowed: with "
            "--virtual-data-size and another --sampling-method than concat"
        )
