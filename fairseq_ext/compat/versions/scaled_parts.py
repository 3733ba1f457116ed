"""Parts of a tensor that plugins change in place, where torch refuses it."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from .dataclass_defaults import noted_places, sources_in

if TYPE_CHECKING:
    from torch import Tensor

# attention of fairseq 0.6 to 0.8, and its copies: q, k, v = self.in_proj_qkv(x); q *= scaling
CUTS_QUERIES = re.compile(r"def in_proj_qkv\b")


@patch(
    "fairseq.utils",
    because="torch 1.8 refuses to change a part of chunk() in place where gradients are recorded: "
    "attention of plugins for fairseq 0.8, which scales its queries so, fails in training with "
    "'Output 0 of SplitBackward0 is a view and is being modified inplace'",
    for_older=True,
)
def plugins_scale_parts_in_place(module: PatchedModule) -> None:
    """Let chunk() cut into copies in processes with a --user-dir that has such an attention."""
    stock = module.import_user_module

    @functools.wraps(stock)
    def import_user_module(args: Any) -> None:
        stock(args)
        if any(map(cuts_queries, noted_places())):
            cut_into_copies(module.torch.Tensor, module.torch.is_grad_enabled)

    module.import_user_module = import_user_module


def cuts_queries(place: str) -> bool:
    """True if a source file there, or the file itself, has the attention of fairseq 0.8."""
    return any(map(CUTS_QUERIES.search, sources_in(place).values()))


def cut_into_copies(tensor: Any, records_gradients: Any) -> None:
    """Let `chunk` of a class of tensors return copies of what has been computed from parameters.

    Only where gradients are recorded does torch refuse to change the parts. Elsewhere they remain
    views, through which the whole can be written, and so do the parts of parameters: `nn.init`
    writes to these without recording gradients.
    """
    stock = tensor.chunk
    if hasattr(stock, "__wrapped__"):
        return

    @functools.wraps(stock)
    def chunk(self: Tensor, *sizes: Any, **options: Any) -> tuple[Tensor, ...]:
        parts = stock(self, *sizes, **options)
        if self.requires_grad and not self.is_leaf and records_gradients():
            return tuple(part.clone() for part in parts)
        return tuple(parts)

    tensor.chunk = chunk
