"""The source side of models that read vectors instead of words."""

import torch

from ..streams.direction import SourceSide


class FeatureSource(SourceSide):
    """Encodes rows of vectors, padded at the end.

    Args:
        module: has ``forward(features (B, S, D), padding (B, S))`` -> states, padding (B, S').
        dictionary: None, or what a task has for its source.
        max_positions: the longest source in rows.
    """

    def forward(self, src_tokens, src_lengths=None, **_unused):
        """src_tokens: features (B, S, D); src_lengths: real rows of each (B,), default: all."""
        sentences, length, _ = src_tokens.shape
        padding = torch.zeros(sentences, length, dtype=torch.bool, device=src_tokens.device)
        if src_lengths is not None:
            padding = torch.arange(length, device=padding.device) >= src_lengths.unsqueeze(1)
        rows = torch.arange(sentences, device=padding.device)
        return {"encoded": [self.module(src_tokens, padding)], "rows": rows}
