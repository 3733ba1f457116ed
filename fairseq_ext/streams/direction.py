"""One direction of a model with several, as fairseq's generator sees it.

Dimensions: B sentences, R = B * K rows of the beams, S source positions, T target positions,
V vocabulary.
"""

from typing import Any, Dict, List, Optional, Protocol, Tuple, cast, runtime_checkable

import torch
from fairseq.data import Dictionary
from fairseq.models import (
    FairseqEncoder,
    FairseqEncoderDecoderModel,
    FairseqIncrementalDecoder,
)
from torch import Tensor, nn

from ..common.decoding import Cache, reorder_cache
from ..common.sentence_steps import SentenceSteps

CACHE = "direction"
EncoderOut = Dict[str, Any]
# states (B, S, .) and padding (B, S) of a source
Encoded = Tuple[Tensor, Tensor]


@runtime_checkable
class ModuleWithSteps(Protocol):
    """A module that knows the steps of a search for one sentence."""

    def sentence_steps(
        self, source: Tensor, rows: int, steps: int, need_attention: bool
    ) -> Optional[SentenceSteps]:
        """Return them for its states (S, .); None where ``decode`` may compute something else."""


class SourceSide(FairseqEncoder):
    """The encoder of a direction.

    Its output is kept once per sentence; "rows" says which sentence each row of the beam belongs
    to; "encoded" is a list, one pair of states (B, S, .) and padding (B, S) for each source.

    Args:
        module: has ``encode(tokens (B, S))`` -> states (B, S', .), padding (B, S').
        dictionary: of the source language.
        max_positions: the longest source in tokens.
    """

    def __init__(self, module: nn.Module, dictionary: Dictionary, max_positions: int):
        super().__init__(dictionary)
        self.module, self._max_positions = module, max_positions

    def forward(
        self, src_tokens: Tensor, src_lengths: Optional[Tensor] = None, **_unused: Any
    ) -> EncoderOut:
        """Return what the decoder reads of the sources (B, S)."""
        # (B,), one row for each sentence
        rows = torch.arange(src_tokens.size(0), device=src_tokens.device)
        return {"encoded": [cast(Any, self.module).encode(src_tokens)], "rows": rows}

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        """Return the same states with their rows (R,) in another order."""
        # fairseq would copy the states to every row of the beam
        rows = encoder_out["rows"].index_select(0, new_order)
        # "reordered": without it ``_by_sentence`` would compare rows, and wait for a GPU, in
        # training too
        return {**encoder_out, "rows": rows, "reordered": True}

    def max_positions(self) -> int:
        """Return the longest source in tokens."""
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
        self,
        module: nn.Module,
        dictionary: Dictionary,
        max_positions: int,
        need_attention: bool = False,
    ):
        super().__init__(dictionary)
        self.module, self._max_positions = module, max_positions
        self.need_attention = need_attention

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut,
        incremental_state: Optional[Dict[str, Cache]] = None,
        **_unused: Any,
    ) -> Tuple[Tensor, Dict[str, List[Optional[Tensor]]]]:
        """Return logits (R, T, V) of (R, T) tokens, or (R, 1, V) with an incremental state."""
        cache = None if incremental_state is None else incremental_state.setdefault(CACHE, {})
        if cache:  # of the first step it is still empty
            # after the first step the keys and values of the source are in the cache
            encoded = encoder_out["encoded"]
        else:
            encoded = self._by_sentence(encoder_out, prev_output_tokens.size(0))
        hidden, attention = self.decode(prev_output_tokens, encoded, cache, encoder_out)
        # fairseq's generator reads the first entry of a list under "attn"
        return cast(Any, self.module).logits(hidden), {"attn": [attention]}

    def decode(
        self,
        prev_tokens: Tensor,
        encoded: List[Encoded],
        cache: Optional[Cache],
        encoder_out: EncoderOut,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Return hidden states (R, T, .) and attention (R, T, S) or None.

        Systems whose modules take other arguments override it.
        """
        states, padding = encoded[0]
        return cast(Any, self.module).decode(
            prev_tokens, states, padding, cache, self.need_attention
        )

    def sentence_steps(
        self, encoder_out: EncoderOut, rows: int, steps: int
    ) -> Optional[SentenceSteps]:
        """Return the steps of a search for one sentence, None if the module has none."""
        if not isinstance(self.module, ModuleWithSteps) or len(encoder_out["encoded"]) > 1:
            return None
        states, padding = encoder_out["encoded"][0]
        if padding.any():
            return None
        return self.module.sentence_steps(states[0], rows, steps, self.need_attention)

    @staticmethod
    def _by_sentence(encoder_out: EncoderOut, rows: int) -> List[Encoded]:
        """Return the states such that equally many neighbouring rows belong to each sentence."""
        encoded: List[Encoded] = encoder_out["encoded"]
        sentence_of_row: Tensor = encoder_out["rows"]  # (R,)
        if not encoder_out.get("reordered"):
            return encoded
        sentences = encoded[0][0].size(0)
        expected = torch.arange(sentences, device=sentence_of_row.device)
        # a beam search before its first step: rows 0 .. K - 1 are of sentence 0, and so on
        if torch.equal(sentence_of_row, expected.repeat_interleave(rows // sentences)):
            return encoded
        return [
            # (R, S, .) and (R, S)
            (states.index_select(0, sentence_of_row), padding.index_select(0, sentence_of_row))
            for states, padding in encoded
        ]

    def reorder_incremental_state(
        self, incremental_state: Dict[str, Cache], new_order: Tensor
    ) -> None:
        """Select the rows of the cache, in place."""
        reorder_cache(incremental_state.get(CACHE, {}), new_order)

    def max_positions(self) -> int:
        """Return the longest target in tokens."""
        return self._max_positions


class Direction(FairseqEncoderDecoderModel):
    """A source side and a target side."""

    def __init__(self, encoder: FairseqEncoder, decoder: TargetSide):
        super().__init__(encoder, decoder)

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor, **more: Any
    ) -> Tuple[Tensor, Dict[str, List[Optional[Tensor]]]]:
        """Return teacher-forced logits (B, T, V) and the attention."""
        encoder_out = self.encoder(src_tokens, src_lengths=src_lengths, **more)
        return self.decoder(prev_output_tokens, encoder_out=encoder_out)
