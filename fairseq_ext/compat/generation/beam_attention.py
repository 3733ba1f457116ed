"""The attention of fconv in a search: whose source it is, and what its weights add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.modules import BeamableMM
    from torch import Tensor


@patch(
    "fairseq.modules.beamable_mm",
    because="fairseq 0.12.2: the attention of fconv takes as many rows for one sentence as the "
    "model was prepared for, --beam or 5, and gives all of them the first one's source, whatever "
    "the beam of translate(), sample() or --score-reference",
)
def hypotheses_have_their_source(module: PatchedModule) -> None:
    """Multiply the rows one by one, as in training."""

    def forward(self: BeamableMM, input1: Tensor, input2: Tensor) -> Tensor:
        """Return the product (B, N, M) of (B, N, K) and (B, K, M)."""
        return input1.bmm(input2)

    module.BeamableMM.forward = forward


@patch(
    "fairseq.models.fconv",
    "fairseq.models.fconv_self_att",
    because="fairseq 0.12.2: the attention of fconv is divided by the number of all layers, also "
    "of those without attention, and that of fconv_self_att by none, so that the weights of "
    "--print-alignment soft do not add up to 1",
)
def weights_add_up_to_one(module: PatchedModule) -> None:
    """Divide the sum over layers by the number of those with attention."""
    decoder = module.FConvDecoder
    stock = decoder.forward
    is_mean = module.__name__ == "fairseq.models.fconv"

    def forward(self: Any, *args: Any, **kw: Any) -> tuple[Tensor, Tensor | None]:
        """Return logits (B, T, V) and weights (B, T, S)."""
        logits, weights = stock(self, *args, **kw)
        if weights is not None:
            layers = sum(layer is not None for layer in self.attention)
            weights = weights * ((len(self.attention) if is_mean else 1) / layers)
        return logits, weights

    decoder.forward = forward
