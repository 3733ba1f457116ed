"""The source side of models that read vectors instead of words."""

from typing import Any, Dict, Optional

import torch
from torch import Tensor, nn

from ...streams.direction import SourceSide


class FeatureSource(SourceSide):
    """Encodes rows of vectors, padded at the end.

    Args:
        module: has ``forward(features (B, S, D), padding (B, S))`` -> states, padding (B, S').
        max_positions: the longest source in rows; None without a limit.
    """

    precision: Tensor

    def __init__(self, module: nn.Module, max_positions: Optional[int]):
        # vectors have no dictionary
        super().__init__(module, None, max_positions)  # type: ignore[arg-type]
        # has the type of the model's parameters, also of a model without any on this side
        self.register_buffer("precision", torch.zeros(()), persistent=False)

    def forward(
        self, src_tokens: Tensor, src_lengths: Optional[Tensor] = None, **_unused: Any
    ) -> Dict[str, Any]:
        """Encode features (B, S, D) with ``src_lengths`` (B,) real rows each, default: all.

        fairseq-generate hands on single precision with --fp16 and --bf16 too.
        """
        src_tokens = src_tokens.type_as(self.precision)  # (B, S, D)
        sentences, length, _ = src_tokens.shape
        padding = torch.zeros(sentences, length, dtype=torch.bool, device=src_tokens.device)
        if src_lengths is not None:
            padding = torch.arange(length, device=padding.device) >= src_lengths.unsqueeze(1)
        rows = torch.arange(sentences, device=padding.device)
        return {"encoded": [self.module(src_tokens, padding)], "rows": rows}
