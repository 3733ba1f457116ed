"""Data sets that show others in part or in another order."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after

if TYPE_CHECKING:
    from fairseq.data import ColorizeDataset
    from fairseq.data.audio.multi_modality_dataset import MultiModalityDataset
    from fairseq.data.multi_corpus_dataset import MultiCorpusDataset


@patch(
    "fairseq.data.subsample_dataset",
    because="fairseq 0.12.2: SubsampleDataset filters and batches its items by the lengths of "
    "others, those with the same numbers in the whole set",
)
def parts_have_their_lengths(module: PatchedModule) -> None:
    """Filter and batch items by their lengths."""
    part, base = module.SubsampleDataset, module.BaseWrapperDataset.__base__
    part.filter_indices_by_size = base.filter_indices_by_size
    part.batch_by_size = base.batch_by_size


@patch(
    "fairseq.data.colorize_dataset",
    because="fairseq 0.12.2: ColorizeDataset gives the colors in the order of the samples, while "
    "the sentences of a batch are sorted by length",
)
def colors_follow_the_batch(module: PatchedModule) -> None:
    """Order the colors as the sentences of the batch."""

    def collater(self: ColorizeDataset, samples: list[dict[str, Any]]) -> dict[str, Any]:
        """Return a batch with net_input.colors (B)."""
        batch: dict[str, Any] = module.BaseWrapperDataset.collater(self, samples)
        if batch:
            colors = [self.color_getter(self.dataset, number) for number in batch["id"].tolist()]
            batch["net_input"]["colors"] = module.torch.tensor(colors, dtype=module.torch.long)
        return batch

    module.ColorizeDataset.collater = collater


@patch(
    "fairseq.data.multi_corpus_dataset",
    because="fairseq 0.12.2: MultiCorpusDataset with batch_sample and distributed_rank gives each "
    "worker another list of batches, of which it takes its share: some are trained twice, others "
    "never",
)
def workers_share_one_list_of_batches(module: PatchedModule) -> None:
    """Shuffle the batches alike in all workers."""

    def forget_rank(self: MultiCorpusDataset, *arguments: Any, **options: Any) -> None:
        if self.distributed_rank is not None:
            self.distributed_rank = 0

    call_after(module.MultiCorpusDataset, "__init__", forget_rank)


@patch(
    "fairseq.data.multi_corpus_dataset",
    because="fairseq 0.12.2: MultiCorpusDataset refuses ten corpora of 0.1 each, whose sum differs "
    "from 1 in its 16th digit, by an AssertionError without a message",
)
def shares_are_added_exactly(module: PatchedModule) -> None:
    """Add the shares without rounding errors between them; ValueError unless they give 1."""
    dataset = module.MultiCorpusDataset
    build = dataset.__init__

    @functools.wraps(build)
    def __init__(
        self: MultiCorpusDataset,
        datasets: Any,
        distribution: list[float],
        *more: Any,
        **options: Any,
    ) -> None:
        if abs(math.fsum(distribution) - 1) > 1e-6:
            raise ValueError(f"the distribution {distribution} of corpora has to add up to 1")
        build(self, datasets, distribution, *more, **options)

    module.sum = lambda shares: round(math.fsum(shares), 6)  # the module's only sum
    dataset.__init__ = __init__


@patch(
    "fairseq.data.audio.multi_modality_dataset",
    because="fairseq 0.12.2: MultiModalityDataset of several sets has None in place of its sizes",
)
def sets_of_modalities_have_sizes(module: PatchedModule) -> None:
    """Return the sizes of all items, in the order of the sets."""
    dataset = module.MultiModalityDataset

    def sizes(self: MultiModalityDataset) -> Any:
        if len(self.datasets) == 1:
            return self.datasets[0].sizes
        return module.ConcatDataset.sizes.fget(self)

    dataset.sizes = property(sizes)
