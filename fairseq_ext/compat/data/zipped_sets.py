"""multilingual_translation, semisupervised_translation and online_backtranslation.

They train on several sets at once, which RoundRobinZipDatasets puts together.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Iterator

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after

if TYPE_CHECKING:
    import numpy as np
    from fairseq.data import NoisingDataset, RoundRobinZipDatasets
    from fairseq.tasks.online_backtranslation import OnlineBackTranslationTask
    from numpy.typing import NDArray
    from torch import Tensor


@patch(
    "fairseq.data.round_robin_zip_datasets",
    because="fairseq 0.12.2: if sentences of the largest set are too long, the epochs of "
    "multilingual_translation have as many sentences as it has left; the longer ones of all other "
    "sets are never trained",
)
def filtered_sets_are_trained_whole(module: PatchedModule) -> None:
    """Find the largest set again when sentences have been left out."""
    zipped = module.RoundRobinZipDatasets
    stock = zipped.filter_indices_by_size

    @functools.wraps(stock)
    def filter_indices_by_size(
        self: RoundRobinZipDatasets, indices: NDArray[np.int64], max_positions: Any = None
    ) -> tuple[NDArray[np.int64], list[int]]:
        """Return the numbers of all items, and a list that is empty if nothing was left out.

        Raises ValueError if a set has no sentence that is short enough.
        """
        _, ignored = stock(self, indices, max_positions)
        sizes = {name: len(order) for name, order in self._ordered_indices.items()}
        empty = [name for name, size in sizes.items() if not size]
        if empty and any(sizes.values()):
            raise ValueError(f"{empty[0]}: no sentence is short enough for {max_positions}")
        self.longest_dataset_key = max(sizes, key=lambda name: sizes[name])
        self.longest_dataset = self.datasets[self.longest_dataset_key]
        return module.np.arange(len(self)), ignored

    zipped.filter_indices_by_size = filter_indices_by_size


@patch(
    "fairseq.data.noising",
    "fairseq.data.round_robin_zip_datasets",
    because="fairseq 0.12.2: semisupervised_translation and online_backtranslation denoise each "
    "sentence from the same noise in every epoch",
)
def noise_changes_with_the_epoch(module: PatchedModule) -> None:
    """Draw the noise of a sentence by its number and the epoch."""
    if hasattr(module, "RoundRobinZipDatasets"):
        module.RoundRobinZipDatasets.set_epoch = _set_epoch
        return
    dataset = module.NoisingDataset

    def __getitem__(self: NoisingDataset, index: int) -> Tensor:
        """Return a sentence with noise, (tokens)."""
        words = self.src_dataset[index]
        with module.data_utils.numpy_seed(self.seed, self.epoch, index):
            # one sentence as a batch, (tokens, 1)
            length = module.torch.LongTensor([len(words)])
            noisy: Tensor = self.noiser.noising(words.unsqueeze(1), length)
        return noisy[:, 0]

    dataset.__getitem__, dataset.epoch = __getitem__, 1


def _set_epoch(self: RoundRobinZipDatasets, epoch: int, **unused: Any) -> None:
    """Tell the epoch to the noise of the sets that have some."""
    for dataset in self.datasets.values():
        for noising in _noise_of(dataset):
            noising.epoch = epoch


def _noise_of(dataset: Any) -> Iterator[NoisingDataset]:
    """Yield the dataset that adds noise to the sources of another one, if there is one."""
    from fairseq.data.noising import NoisingDataset

    while dataset is not None:
        if isinstance(dataset, NoisingDataset):
            yield dataset
        # pairs of sentences have a source; others wrap one dataset
        dataset = getattr(dataset, "src", getattr(dataset, "dataset", None))


@patch(
    "fairseq.tasks.semisupervised_translation",
    "fairseq.tasks.online_backtranslation",
    because="fairseq 0.12.2: the noise of semisupervised_translation and online_backtranslation "
    "does not depend on --seed",
)
def noise_depends_on_the_seed(module: PatchedModule) -> None:
    """Give --seed to the noise of the sets, which stock draws from 1."""
    if hasattr(module, "OnlineBackTranslationTask"):
        task, name = module.OnlineBackTranslationTask, "load_denoise_dataset"
    else:
        task, name = module.SemisupervisedTranslationTask, "load_dataset"
    load = getattr(task, name)

    @functools.wraps(load)
    def load_noise(self: Any, *arguments: Any, **options: Any) -> Any:
        loaded = load(self, *arguments, **options)
        zipped = self.datasets.values() if loaded is None else ()  # load_dataset returns nothing
        parts = [part for sets in zipped for part in sets.datasets.values()]
        for dataset in [loaded, *parts]:
            for noising in _noise_of(dataset):
                noising.seed = self.args.seed
        return loaded

    setattr(task, name, load_noise)


@patch(
    "fairseq.tasks.online_backtranslation",
    because="fairseq 0.12.2: of a data folder with the folders shard0, shard1, ..., "
    "online_backtranslation trains on one in all epochs, whichever the file system lists first",
)
def shards_follow_each_other(module: PatchedModule) -> None:
    """Read the next folder in each epoch, in the order of their names."""
    task = module.OnlineBackTranslationTask

    def sort_shards(self: OnlineBackTranslationTask, args: Any, *more: Any, **named: Any) -> None:
        if self.data != module.utils.split_paths(args.data):
            self.data.sort(key=lambda path: (len(path), path))

    def has_sharded_data(self: OnlineBackTranslationTask, split: str) -> bool:
        """Return True if each epoch reads other files."""
        return split == "train" and len(self.data) > 1

    call_after(task, "__init__", sort_shards)
    task.has_sharded_data = has_sharded_data
