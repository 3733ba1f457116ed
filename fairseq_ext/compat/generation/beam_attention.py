"""The attention of fconv in a search: every hypothesis looks at the source of its own sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
