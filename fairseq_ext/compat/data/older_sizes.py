"""Lengths by which a set of a plugin wants its items to be batched and left out."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    import numpy as np

WITH_LENGTHS = {
    "fairseq.data.language_pair_dataset": "LanguagePairDataset",
    "fairseq.data.monolingual_dataset": "MonolingualDataset",
}


@patch(
    *WITH_LENGTHS,
    because="fairseq 0.11 batches pairs and blocks by num_tokens_vec: sets of plugins for 0.9 and "
    "0.10 that derive from them and replace num_tokens are batched by the lengths of fairseq, "
    "without a message",
)
def items_count_as_many_tokens_as_they_say(module: PatchedModule) -> None:
    """Ask num_tokens for each item where a class replaces it alone."""
    dataset = getattr(module, WITH_LENGTHS[module.__name__])
    count, stock = dataset.num_tokens, dataset.num_tokens_vec

    @functools.wraps(stock)
    def num_tokens_vec(self: Any, indices: np.ndarray) -> Any:
        kind = type(self)
        if kind.num_tokens is count or kind.num_tokens_vec is not num_tokens_vec:
            return stock(self, indices)
        counts = (self.num_tokens(index) for index in indices)
        return module.np.fromiter(counts, dtype=module.np.int64, count=len(indices))

    dataset.num_tokens_vec = num_tokens_vec


@patch(
    "fairseq.data.language_pair_dataset",
    because="fairseq 0.10 compares the sizes of both sides with --max-source-positions and "
    "--max-target-positions: sets of plugins for 0.9 that derive from LanguagePairDataset and "
    "replace size, as its description asks for, leave out other pairs, without a message",
)
def pairs_are_as_long_as_they_say(module: PatchedModule) -> None:
    """Compare what `size` returns where a class replaces it alone."""
    dataset = module.LanguagePairDataset
    size, stock = dataset.size, dataset.filter_indices_by_size

    @functools.wraps(stock)
    def filter_indices_by_size(self: Any, indices: np.ndarray, max_sizes: Any) -> Any:
        kind = type(self)
        is_stock = kind.size is size or kind.filter_indices_by_size is not filter_indices_by_size
        if max_sizes is None or is_stock or self.buckets is not None:
            return stock(self, indices, max_sizes)
        limits = max_sizes if isinstance(max_sizes, (tuple, list)) else (max_sizes, max_sizes)
        return module.data_utils._filter_by_size_dynamic(indices, self.size, limits)

    dataset.filter_indices_by_size = filter_indices_by_size
