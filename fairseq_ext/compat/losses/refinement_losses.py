"""The loss of Levenshtein Transformers, CMLM and other models that refine a translation."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from torch import Tensor


@patch(
    "fairseq.criterions.nat_loss",
    because="fairseq 0.12.2: nat_loss with --fp16 or --bf16 has its means in 16 bits: with --bf16 "
    "those from 4 to 8 are logged in steps of 1/32, and the perplexity is off by up to 1.6%",
)
def means_are_in_single_precision(module: PatchedModule) -> None:
    """Compute the loss of logits in 16 bits in float32, as other criteria do."""
    import torch

    criterion = module.LabelSmoothedDualImitationCriterion
    stock = criterion._compute_loss

    @functools.wraps(stock)
    def _compute_loss(
        self: Any, outputs: Tensor, targets: Tensor, *args: Any, **kwargs: Any
    ) -> dict[str, Any]:
        exact = outputs.to(torch.promote_types(outputs.dtype, torch.float32))
        result: dict[str, Any] = stock(self, exact, targets, *args, **kwargs)
        return result

    criterion._compute_loss = _compute_loss
