"""The alignments of transformer_align: those of the heads that were trained to align."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after

if TYPE_CHECKING:
    from fairseq.models.transformer import TransformerDecoderBase
    from torch import Tensor


@patch(
    "fairseq.models.transformer_align",
    because="fairseq 0.12.2: --print-alignment and --replace-unk of transformer_align read the "
    "mean of all heads of the last layer, not --alignment-heads of --alignment-layer, which "
    "were trained to align",
)
def alignments_are_of_the_trained_heads(module: PatchedModule) -> None:
    """Let the decoder give their attention in a search, too."""
    from fairseq.models.transformer import TransformerDecoderBase

    class AligningDecoder(TransformerDecoderBase):  # type: ignore[misc, valid-type]
        """A decoder whose attention is that of given heads, unless its caller asks for others."""

        def align_by(self, layer: int, heads: int) -> None:
            """Take the first `heads` heads of a layer, if there are such."""
            exists = 0 <= layer < self.num_layers and heads > 0
            self.alignment_heads = (layer, heads) if exists else (None, None)

        def extract_features(
            self,
            prev_output_tokens: Tensor,
            encoder_out: Any,
            incremental_state: Any = None,
            full_context_alignment: bool = False,
            alignment_layer: int | None = None,
            alignment_heads: int | None = None,
        ) -> Any:
            """Return (features, (B, T, D), and a dictionary with the attention)."""
            if alignment_layer is None and alignment_heads is None:
                alignment_layer, alignment_heads = self.alignment_heads
            return super().extract_features(
                prev_output_tokens,
                encoder_out,
                incremental_state,
                full_context_alignment,
                alignment_layer,
                alignment_heads,
            )

    def align(self: Any, encoder: Any, decoder: TransformerDecoderBase, args: Any) -> None:
        if type(decoder) is TransformerDecoderBase:  # a plugin may have its own decoder
            decoder.__class__ = AligningDecoder
            decoder.align_by(self.alignment_layer, self.alignment_heads)

    call_after(module.TransformerAlignModel, "__init__", align)
