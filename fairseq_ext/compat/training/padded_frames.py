"""Convolutions over the frames of a batch of recordings, which are padded to one length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from torch import Tensor


@patch(
    "fairseq.models.speech_to_text.s2t_transformer",
    because="fairseq 0.12.2: all convolutions of s2t_transformer and s2t_conformer but the first "
    "read what the one before makes of the padding, so that the last frames of a recording, and "
    "with them loss and translation, depend on the batch",
)
def subsampling_leaves_padding_out(module: PatchedModule) -> None:
    """Set the frames behind the end of a recording to zero after each convolution."""

    def forward(self: Any, src_tokens: Tensor, src_lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return frames (T', B, C) and their numbers (B,) of (B, T, D) and (B,)."""
        x, lengths = src_tokens.transpose(1, 2).contiguous(), src_lengths  # (B, D, T)
        for conv in self.conv_layers:
            x = torch.nn.functional.glu(conv(x), dim=1)
            # a stride of 2
            lengths = torch.div(lengths - 1, 2, rounding_mode="floor") + 1
            is_padding = torch.arange(x.size(2), device=x.device) >= lengths.unsqueeze(1)
            x = x.masked_fill(is_padding.unsqueeze(1), 0)
        return x.permute(2, 0, 1).contiguous(), lengths

    module.Conv1dSubsampler.forward = forward


@patch(
    "fairseq.modules.conformer_layer",
    because="fairseq 0.12.2: the convolution of a conformer reads the padding, which its other "
    "parts have filled, so that the last frames of a recording depend on the batch",
)
def conformers_leave_padding_out(module: PatchedModule) -> None:
    """Give the convolution zeros in the place of the padding."""
    stock = module.ConformerEncoderLayer.forward

    def forward(
        self: Any,
        x: Tensor,
        encoder_padding_mask: Tensor | None,
        position_emb: Tensor | None = None,
    ) -> Any:
        if encoder_padding_mask is None:
            return stock(self, x, encoder_padding_mask, position_emb)
        is_padding = encoder_padding_mask.unsqueeze(1)  # (B, 1, T)

        def without_padding(_convolution: Any, inputs: tuple[Tensor]) -> tuple[Tensor]:
            return (inputs[0].masked_fill(is_padding, 0),)

        # of the layer, what looks at neighbouring frames
        convolution = self.conv_module.depthwise_conv
        hook = convolution.register_forward_pre_hook(without_padding)
        try:
            return stock(self, x, encoder_padding_mask, position_emb)
        finally:
            hook.remove()

    module.ConformerEncoderLayer.forward = forward
