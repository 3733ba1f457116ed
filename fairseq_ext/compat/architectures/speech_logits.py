"""The logits of wav2vec 2.0 and HuBERT with CTC, which decoders of speech ask for.

Dimensions: T frames, B recordings, V labels; label 0 is the blank.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Mapping

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from torch import Tensor


@patch(
    "fairseq.models.hubert.hubert_asr",
    because="fairseq 0.12.2: the logits of padding stay as they are, because they are changed in a "
    "copy: a recording has letters behind its end where its batch has a longer one",
)
def padding_is_blank(module: PatchedModule) -> None:
    """Give padding the blank, in a copy of what the encoder returned."""

    def get_logits(self: Any, net_output: Mapping[str, Any]) -> Tensor:
        """Return (T, B, V)."""
        logits, is_padding = net_output["encoder_out"], net_output["encoder_padding_mask"]
        if is_padding is None or not is_padding.any():
            return logits
        is_padding = is_padding.T.unsqueeze(2)  # (T, B, 1)
        logits = logits.masked_fill(is_padding, float("-inf"))
        logits[..., :1] = logits[..., :1].masked_fill(is_padding, 0)
        return logits

    module.HubertCtc.get_logits = get_logits


@patch(
    "fairseq.models.wav2vec.wav2vec2_asr",
    because="fairseq 0.12.2: logits are computed in what the encoder returned, so that "
    "blank_weight is added again by each call of get_logits or get_normalized_probs",
)
def blanks_have_their_weight_once(module: PatchedModule) -> None:
    """Compute logits in a copy."""
    stock = module.Wav2VecCtc.get_logits

    @functools.wraps(stock)
    def get_logits(self: Any, net_output: Mapping[str, Any], normalize: bool = False) -> Tensor:
        """Return (T, B, V)."""
        copied = {**net_output, "encoder_out": net_output["encoder_out"].clone()}
        return stock(self, copied, normalize)

    module.Wav2VecCtc.get_logits = get_logits
