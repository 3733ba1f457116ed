"""A recogniser of speech with location-aware attention, in plain torch.

The model of Bahdanau et al. (ICASSP 2016), which the paper follows (Sec. 4.1); the attention is
that of Chorowski et al. (2015, Sec. 2.2)::

    h    = BiLSTM_n( .. BiLSTM_1(frames))                          layer l reads every r_l-th state
    s_j  = LSTM([E y_{j-1} ; z_{j-1}], s_{j-1})                    the state that predicts y_j
    f_j  = F * a_{j-1}                                             location features
    e_ji = energy . tanh(W_q s_j + V h_i + L f_ji + b);  a_j = softmax(e_j)
    z_j  = sum_i a_ji h_i
    P(y_j) = softmax(W_o tanh(W_s s_j + W_z z_j + b_r) + b_o)

s_0 and z_0 are zero, a_0 is one at the first position. The backward network reads h in the
opposite order: for it the last position is the first, and its window moves from the end.

In pre-training "the context window is only allowed to move forward": at step j = 0, 1, .. the
attention sees the positions from slowest * j to first + fastest * j (``Window``); the numbers are
those of the authors' recipe for WSJ.

Deviation: Bahdanau et al. have GRUs, and after pre-training a window of 100 positions around the
median of the attention before; here are LSTMs, and after pre-training the attention sees all.

Dimensions: B sentences, R = B * K rows of beams, F frames, D features of a frame, S positions after
time reduction, T steps, E embedding, G units of an encoder layer in each direction, H units, A
attention, O readout, V vocabulary. Masks are bool, True = padding.
"""

from dataclasses import dataclass
from typing import NamedTuple, Tuple

import torch
from torch import Tensor, nn

from ...common.dropout import RetainsDropout
from ...common.layers import embedding, linear
from ...common.lstm import BidirectionalLSTM
from ...common.padding import reorder, reversal
from ...common.sizes import check_sizes
from ..attentive.layer import AttentiveDecoder, AttentiveLSTM


@dataclass(frozen=True)
class SpeechSize:
    """Widths of the model. time_reduction: r of each encoder layer, the lowest first.

    Raises ValueError, naming the option, for values out of range.
    """

    encoder_hidden_size: int
    embed_dim: int
    hidden_size: int
    attention_size: int
    readout_size: int
    conv_filters: int
    conv_width: int
    time_reduction: Tuple[int, ...]
    dropout: float

    def __post_init__(self) -> None:
        check_sizes(self)
        if self.conv_width % 2 == 0:
            raise ValueError(f"--conv-width {self.conv_width}: must be odd")
        if not self.time_reduction or min(self.time_reduction) < 1:
            raise ValueError(
                f"--time-reduction {','.join(map(str, self.time_reduction))}: must be numbers from "
                "1, one for each encoder layer"
            )


class Window(NamedTuple):
    """Positions that are seen at step j from 0: slowest * j .. first + fastest * j."""

    first: float
    slowest: float
    fastest: float

    def mask(self, padding: Tensor, steps: int) -> Tensor:
        """Return (T, B, S), True outside of the window; the last real position stays in it."""
        step = torch.arange(steps, device=padding.device).view(-1, 1, 1)  # (T, 1, 1)
        position = torch.arange(padding.size(1), device=padding.device)  # (S,)
        last = (~padding).sum(dim=1).sub(1).view(1, -1, 1)  # (1, B, 1)
        # a slow speaker: the window's beginning must not leave the recording
        begin = torch.minimum((self.slowest * step).floor(), last)  # (T, B, 1)
        # at least one position, or the softmax would have nothing to divide by
        end = torch.maximum((self.first + self.fastest * step).ceil(), begin + 1)
        return (position < begin) | (position >= end) | padding


class SpeechEncoder(RetainsDropout, nn.Module):
    """Frames -> annotations h.

    Args:
        size: G, r and the dropout rate.
        features: D.
    """

    def __init__(self, size: SpeechSize, features: int):
        super().__init__()
        self.reduction, self.dropout = size.time_reduction, size.dropout
        width = 2 * size.encoder_hidden_size
        self.layers = nn.ModuleList(
            BidirectionalLSTM(width if number else features, size.encoder_hidden_size)
            for number in range(len(self.reduction))
        )

    def forward(
        self, frames: Tensor, padding: Tensor, literal: bool = False
    ) -> Tuple[Tensor, Tensor]:
        """Return h (B, S, 2G) and padding (B, S) of frames (B, F, D) and padding (B, F).

        Of n real frames ceil(n / r) remain below a layer with reduction r.
        """
        states = frames
        for reduction, layer in zip(self.reduction, self.layers):
            # every r-th state, the first one included: (B, ceil(F / r), ..)
            states, padding = states[:, ::reduction], padding[:, ::reduction]
            states = layer(states, padding, literal)
            states = self.drop(states)
        return states, padding


class SpeechDecoder(AttentiveDecoder):
    """Characters, each from those before and from h.

    Args:
        size: E, G, H, A, O, the filters and the dropout rate.
        vocab_size: V.
        padding_index: index of the padding symbol.
    """

    def __init__(self, size: SpeechSize, vocab_size: int, padding_index: int):
        context_size = 2 * size.encoder_hidden_size
        layer = AttentiveLSTM(
            size.embed_dim,
            context_size,
            size.hidden_size,
            size.attention_size,
            # first = 1: s_j looks, and the readout of the same step reads what it saw
            first=1,
            location=(size.conv_filters, size.conv_width),
        )
        super().__init__(
            embedding(vocab_size, size.embed_dim, padding_index),
            layer,
            linear(size.readout_size, vocab_size),  # W_o, b_o
            size.dropout,
        )
        self.hidden_size = size.hidden_size
        self.readout_state = linear(size.hidden_size, size.readout_size)  # W_s, b_r
        self.readout_context = linear(context_size, size.readout_size, bias=False)  # W_z

    def initial(self, annotations: Tensor, padding: Tensor) -> Tuple[Tensor, Tensor]:
        """Return h_0 and m_0 (B, H), which are zero."""
        zeros = annotations.new_zeros(padding.size(0), self.hidden_size)
        return zeros, zeros

    def readout(self, vectors: Tensor, states: Tensor, contexts: Tensor) -> Tensor:
        """Return tanh(W_s s_j + W_z z_j + b_r), (R, T, O)."""
        return torch.tanh(self.readout_state(states) + self.readout_context(contexts))


def mirrored(annotations: Tensor, padding: Tensor) -> Tensor:
    """Return annotations (B, S, C) in the opposite order, padding still at the end."""
    return reorder(annotations, reversal(padding))
