"""Masks of bytes, where torch takes bool masks only."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, Callable

from ..patch_registry import PatchedModule, patch, since
from .dataclass_defaults import noted_places, sources_in

if TYPE_CHECKING:
    from torch import Tensor, dtype

# what a source that makes masks of bytes has in it
BYTES = re.compile(r"\.byte\(\)|ByteTensor|torch\.uint8")
# methods of tensors whose first argument is a mask
MASKED = ("masked_fill", "masked_fill_", "masked_scatter", "masked_scatter_", "masked_select")


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


@patch(
    "fairseq.utils",
    because="torch 2.0 takes bool masks only: plugins for fairseq 0.8 and 0.9 that mask with "
    "mask.byte() fail with 'masked_fill_ only supports boolean masks'",
    conditions=[since("torch", 2, 0)],
    for_older=True,
)
def plugins_mask_with_bytes(module: PatchedModule) -> None:
    """Take masks of bytes in processes with a --user-dir whose source makes such."""
    stock = module.import_user_module

    @functools.wraps(stock)
    def import_user_module(args: Any) -> None:
        stock(args)
        if any(map(makes_bytes, noted_places())):
            take_bytes(module.torch.Tensor)

    module.import_user_module = import_user_module


def makes_bytes(place: str) -> bool:
    """True if a source file there, or the file itself, makes tensors of bytes."""
    return any(map(BYTES.search, sources_in(place).values()))


def take_bytes(tensor: Any) -> None:
    """Let methods of a class of tensors take masks of bytes, as until torch 1.13."""
    for name in MASKED:
        if not hasattr(getattr(tensor, name), "__wrapped__"):
            setattr(tensor, name, with_bool_mask(getattr(tensor, name)))


def with_bool_mask(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method whose first argument, a mask, may be of bytes."""

    @functools.wraps(method)
    def masked(self: Tensor, mask: Tensor, *more: Any, **options: Any) -> Any:
        is_bytes = str(mask.dtype) == "torch.uint8"
        return method(self, mask.bool() if is_bytes else mask, *more, **options)

    return masked
