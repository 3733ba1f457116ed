"""The example roberta/wsc: the cross entropy of pairs of candidates."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..imported_examples import modules_of_examples
from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from torch import Tensor


@patch(
    *modules_of_examples("roberta.wsc.wsc_criterion"),
    because="fairseq 0.12.2: --criterion winogrande with --wsc-cross-entropy takes all candidates "
    "of a batch for those of its first sentence, and trains on this sentence alone",
)
def pairs_have_their_cross_entropy(module: PatchedModule) -> None:
    """Sum the cross entropy of the pairs: -log(exp q / (exp q + exp c)) of each sentence."""
    import torch

    stock = module.WinograndeCriterion.get_loss

    @functools.wraps(stock)
    def get_loss(self: Any, query_lprobs: Tensor, cand_lprobs: Tensor) -> Tensor:  # both (B,)
        if not self.args.wsc_cross_entropy:
            return stock(self, query_lprobs, cand_lprobs)
        pairs = torch.stack([query_lprobs, cand_lprobs], dim=1)  # (B, 2)
        right = torch.zeros(pairs.size(0), dtype=torch.long, device=pairs.device)
        return torch.nn.functional.cross_entropy(pairs, right, reduction="sum")

    module.WinograndeCriterion.get_loss = get_loss
