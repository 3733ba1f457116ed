"""--num-batch-buckets pads sentences, and neither leaves them out nor moves their beginning.

Dimensions: B sentences, T target positions.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after

if TYPE_CHECKING:
    import numpy as np
    from fairseq.data import BucketPadLengthDataset, LanguagePairDataset
    from torch import Tensor


def _limit(side: BucketPadLengthDataset, longest: float) -> np.ndarray:
    """Lower the buckets above ``longest`` to it; return the padded size of each sentence."""
    side._bucketed_sizes = side._bucketed_sizes.clip(max=longest).astype(int)
    return side._bucketed_sizes


@patch(
    "fairseq.data.language_pair_dataset",
    because="fairseq 0.12.2: --num-batch-buckets compares the size of a bucket with "
    "--max-source-positions and --max-tokens: one sentence that is too long removes all of its "
    "bucket, an eighth of the data with 8 buckets",
)
def buckets_keep_short_sentences(module: PatchedModule) -> None:
    """Leave out the sentences that are too long, and lower the last bucket to the limit."""
    import numpy as np

    dataset = module.LanguagePairDataset
    filter_by_size = dataset.filter_indices_by_size

    def note_sizes(self: LanguagePairDataset, *args: Any, **options: Any) -> None:
        # as they are without padding; `sizes` stays as it was
        sizes = self.sizes if self.sizes.ndim == 2 else self.sizes[:, None]
        self.unpadded_sizes = [sizes[:, side] for side in range(sizes.shape[1])]

    @functools.wraps(filter_by_size)
    def filter_indices_by_size(
        self: LanguagePairDataset, indices: np.ndarray, max_sizes: Any
    ) -> tuple[np.ndarray, list[int]]:
        if self.buckets is None or max_sizes is None:
            return filter_by_size(self, indices, max_sizes)
        is_pair = isinstance(max_sizes, (tuple, list))
        limits = list(max_sizes) if is_pair else [max_sizes, max_sizes]
        source, *target = self.unpadded_sizes
        indices, ignored = module.data_utils.filter_paired_dataset_indices_by_size(
            source, target[0] if target else None, indices, limits
        )
        self.src_sizes = _limit(self.src, limits[0])
        if target:
            self.tgt_sizes = _limit(self.tgt, limits[1])
        self.bucketed_num_tokens = self.num_tokens_vec(np.arange(len(self)))
        self.buckets = [(None, size) for size in np.unique(self.bucketed_num_tokens)]
        order = np.argsort(self.bucketed_num_tokens[indices], kind="mergesort")
        return indices[order], ignored

    call_after(dataset, "__init__", note_sizes)
    dataset.filter_indices_by_size = filter_indices_by_size


def _shifted(target: Tensor, pad: int, eos: int) -> Tensor:
    """Return targets (B, T) with padding on the left, shifted by one word behind an ``eos``."""
    first = target.ne(pad).long().argmax(dim=1, keepdim=True)  # (B, 1)
    previous = target.roll(1, dims=1)
    previous[:, 0] = pad
    return previous.scatter(1, first, eos)


@patch(
    "fairseq.data.language_pair_dataset",
    because="fairseq 0.12.2: with --num-batch-buckets and --left-pad-target, the </s> that the "
    "decoder begins with stands before the padding, and the first word is predicted from padding",
)
def buckets_begin_with_the_end_symbol(module: PatchedModule) -> None:
    """Put the symbol directly before the first word."""
    dataset = module.LanguagePairDataset
    stock = dataset.collater

    @functools.wraps(stock)
    def collater(self: LanguagePairDataset, samples: Any, pad_to_length: Any = None) -> Any:
        batch = stock(self, samples, pad_to_length)
        if self.buckets is not None and self.left_pad_target and batch:
            inputs = batch["net_input"]
            if "prev_output_tokens" in inputs:
                shifted = _shifted(batch["target"], self.src_dict.pad(), self.eos)
                inputs["prev_output_tokens"] = shifted
        return batch

    dataset.collater = collater
