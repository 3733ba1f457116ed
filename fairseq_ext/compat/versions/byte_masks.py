"""Masks of bytes, where torch takes bool masks only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..patch_registry import PatchedModule, patch, since

if TYPE_CHECKING:
    from torch import Tensor, dtype


@patch(
    "fairseq.modules.multihead_attention",
    because="torch 2.0 takes bool masks only: attention of xformers fails with a mask of bytes "
    "that is to be added",
    conditions=[since("torch", 2, 0)],
)
def byte_masks_for_xformers(module: PatchedModule) -> None:
    """Convert masks of bytes to bool before torch sees them."""
    import torch

    stock = module._mask_for_xformers

    def _mask_for_xformers(mask: Tensor, to_dtype: dtype | None = None) -> Tensor:
        if mask.dtype != torch.uint8:
            return stock(mask, to_dtype)
        return stock(mask.to(torch.bool), to_dtype or mask.dtype)

    module._mask_for_xformers = _mask_for_xformers
