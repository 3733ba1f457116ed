"""fconv_self_att attends to the words of a source, not to its padding."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, ContextManager, Iterator

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_within
from .zeros_for_padding import reading

if TYPE_CHECKING:
    from torch import Tensor


@patch(
    "fairseq.models.fconv_self_att",
    because="fairseq 0.12.2: the decoder of fconv_self_att, and with --encoder-attention its "
    "encoder, attend to the padding of sources, so that loss and translation depend on the batch",
)
def decoders_attend_to_no_padding(module: PatchedModule) -> None:
    """Leave the weights of padding out; fairseq's attention fails on a mask for several heads."""
    encoder, decoder = module.FConvEncoder, module.FConvDecoder

    @contextlib.contextmanager
    def encode_words(self: Any, src_tokens: Tensor, src_lengths: Tensor) -> Iterator[None]:
        import torch

        is_padding = src_tokens.eq(self.padding_idx)
        # before the words, the attention of a sentence to itself has a column of zeros
        is_padding = torch.nn.functional.pad(is_padding, (1, 0), value=False)
        with contextlib.ExitStack() as stack:
            for attention in self.attention:
                if attention is not None:
                    stack.enter_context(_weights_without(attention.attention, is_padding))
            yield

    @contextlib.contextmanager
    def attend_to_words(self: Any, prev_output_tokens: Tensor, encoder_out: Any) -> Iterator[None]:
        is_padding = encoder_out["encoder"]["encoder_padding_mask"]  # (B, S)
        with contextlib.ExitStack() as stack:
            for attention in self.attention:
                if attention is not None and is_padding is not None:
                    stack.enter_context(_weights_without(attention, is_padding))
            yield

    call_within(encoder, "forward", encode_words)
    call_within(decoder, "forward", attend_to_words)


def _weights_without(attention: Any, is_padding: Tensor) -> ContextManager[None]:
    """Let an attention, (B * H, T, S) of H heads, divide its weights among words, (B, S)."""

    def without_padding(weights: Tensor) -> Tensor:
        padding = is_padding.repeat_interleave(attention.num_heads, dim=0).unsqueeze(1)
        weights = weights.masked_fill(padding, 0)
        return weights / weights.sum(2, keepdim=True)

    # what comes right after the softmax
    return reading(attention.attention_module.dropout_module, without_padding)
