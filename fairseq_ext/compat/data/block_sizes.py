"""Language models: blocks of any length have their size."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Tuple

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Indices = NDArray[np.integer[Any]]


@patch(
    "fairseq.data.token_block_dataset",
    because="fairseq 0.12.2: the size of a block is stored in 16 bits unless --tokens-per-sample "
    "is larger, but a line is a block of its own with --sample-break-mode eos, and may be with "
    "complete: 70,000 tokens count as 4,464",
)
def blocks_have_their_size(module: PatchedModule) -> None:
    """Store sizes that 16 bits cannot hold in 32."""
    # the commands that import neither torch nor numpy import this file
    import numpy as np

    dataset = module.TokenBlockDataset
    stock = dataset._build_slice_indices

    @functools.wraps(stock)
    def _build_slice_indices(*args: Any) -> Tuple[Indices, Indices, Indices]:
        sizes, blocks, slices = stock(*args)
        exact = slices[:, 1].astype(np.int64) - slices[:, 0].astype(np.int64)
        if (sizes != exact).any():
            sizes = exact.astype(np.uint32)
        return sizes, blocks, slices

    dataset._build_slice_indices = staticmethod(_build_slice_indices)
