"""Which decoders have the steps of sentence_steps.py, and when a search takes them.

Dimensions: R rows, T steps.
"""

from typing import Any, Optional, Protocol, runtime_checkable

import torch
from fairseq.models import BaseFairseqModel
from fairseq.models.lstm import LSTMDecoder
from torch import nn

from .products import active_cache, is_autocast
from .sentence_steps import SentenceSteps
from .stock_lstm_steps import lstm_steps
from .stock_transformer_steps import transformer_steps

MOST_ROWS = 16  # every row multiplies with the past of all rows
LONGEST = 128  # source positions; with more, reading them takes the time that a step saves
EXACT = torch.float32, torch.float64  # in 16 bits another order of a sum shows in the translations


@runtime_checkable
class DecoderWithSteps(Protocol):
    """A decoder that knows the steps of a search for one sentence."""

    def sentence_steps(self, encoder_out: Any, rows: int, steps: int) -> Optional[SentenceSteps]:
        """Return the steps of this decoder, None where they would not be what ``forward`` computes.

        Args:
            encoder_out: what the encoder has returned for one sentence.
            rows: hypotheses that are followed, R. steps: the most there will be, T.
        """


def decoder_steps(
    model: BaseFairseqModel, encoder_out: Any, positions: int, rows: int, steps: int
) -> Optional[SentenceSteps]:
    """Return the steps of a search for one sentence; None leaves them to the model.

    Args:
        model: in a search, whose parameters do not change.
        encoder_out: what its encoder has returned for the sentence.
        positions: of the sentence.
        rows: R.
        steps: T.
    """
    if rows > MOST_ROWS or positions > LONGEST:
        return None
    decoder: nn.Module = model.decoder
    # all of them are where the first one is
    first = next(decoder.parameters(), None)
    is_exact = first is not None and first.device.type == "cpu" and first.dtype in EXACT
    if active_cache() is None or is_autocast() or not is_exact:
        return None
    if isinstance(decoder, DecoderWithSteps):
        return decoder.sentence_steps(encoder_out, rows, steps)
    if isinstance(decoder, LSTMDecoder):
        return lstm_steps(decoder, encoder_out, rows)
    return transformer_steps(decoder, encoder_out, rows, steps)
