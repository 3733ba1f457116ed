"""One direction of a model with several, as fairseq's generator sees it.

Dimensions: B sentences, R = B * K rows of the beams, S source positions, T target positions,
V vocabulary.
"""

from typing import Any, Dict, List, Tuple

import torch
from fairseq.models import (
    FairseqEncoder,
    FairseqEncoderDecoderModel,
    FairseqIncrementalDecoder,
)
from torch import Tensor, nn

from ..common.decoding import reorder_cache

CACHE = "direction"
EncoderOut = Dict[str, Any]


class SourceSide(FairseqEncoder):
    """The encoder of a direction.

    Its output is kept once per sentence; "rows" says which sentence each row of the beam belongs
    to; "encoded" is a list, one pair of states (B, S, .) and padding (B, S) for each source.

    Args:
        module: has ``encode(tokens (B, S))`` -> states (B, S', .), padding (B, S').
        dictionary: of the source language.
        max_positions: the longest source in tokens.
    """

    def __init__(self, module: nn.Module, dictionary, max_positions: int):
        super().__init__(dictionary)
        self.module, self._max_positions = module, max_positions

    def forward(self, src_tokens, src_lengths=None, **_unused) -> EncoderOut:
        rows = torch.arange(src_tokens.size(0), device=src_tokens.device)
        return {"encoded": [self.module.encode(src_tokens)], "rows": rows}

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor):
        rows = encoder_out["rows"].index_select(0, new_order)
        return {**encoder_out, "rows": rows, "reordered": True}

    def max_positions(self):
        return self._max_positions


class TargetSide(FairseqIncrementalDecoder):
    """The decoder of a direction.

    Args:
        module: has ``decode(prev_tokens (R, T), states, padding, cache, need_weights)`` -> hidden
            (R, T, .), attention (R, T, S) or None; and ``logits(hidden)`` -> (R, T, V).
        dictionary: of the target language.
        max_positions: the longest target in tokens.
        need_attention: return the attention over the source, as alignments need it.
    """

    def __init__(
        self, module: nn.Module, dictionary, max_positions: int, need_attention: bool = False
    ):
        super().__init__(dictionary)
        self.module, self._max_positions = module, max_positions
        self.need_attention = need_attention

    def forward(self, prev_output_tokens, encoder_out=None, incremental_state=None, **_unused):
        """(R, T) tokens -> logits (R, T, V), or (R, 1, V) with an incremental state."""
        cache = None if incremental_state is None else incremental_state.setdefault(CACHE, {})
        if cache:
            encoded = encoder_out["encoded"]  # not read again
        else:
            encoded = self._by_sentence(encoder_out, prev_output_tokens.size(0))
        hidden, attention = self.decode(prev_output_tokens, encoded, cache, encoder_out)
        return self.module.logits(hidden), {"attn": [attention]}

    def decode(self, prev_tokens, encoded, cache, encoder_out):
        """Hidden states and attention; systems whose modules take other arguments override it."""
        return self.module.decode(prev_tokens, *encoded[0], cache, self.need_attention)

    @staticmethod
    def _by_sentence(encoder_out: EncoderOut, rows: int) -> List[Tuple[Tensor, Tensor]]:
        """States and padding such that equally many neighbouring rows belong to each sentence."""
        encoded, wanted = encoder_out["encoded"], encoder_out["rows"]  # wanted: (R,)
        if not encoder_out.get("reordered"):
            return encoded
        sentences = encoded[0][0].size(0)
        expected = torch.arange(sentences, device=wanted.device)
        if torch.equal(wanted, expected.repeat_interleave(rows // sentences)):
            return encoded
        return [tuple(part.index_select(0, wanted) for part in one) for one in encoded]

    def reorder_incremental_state(self, incremental_state, new_order):
        reorder_cache(incremental_state.get(CACHE, {}), new_order)

    def max_positions(self):
        return self._max_positions


class Direction(FairseqEncoderDecoderModel):
    """A source side and a target side."""

    def __init__(self, encoder: FairseqEncoder, decoder: TargetSide):
        super().__init__(encoder, decoder)

    def forward(self, src_tokens, src_lengths, prev_output_tokens, **more):
        encoder_out = self.encoder(src_tokens, src_lengths=src_lengths, **more)
        return self.decoder(prev_output_tokens, encoder_out=encoder_out)
