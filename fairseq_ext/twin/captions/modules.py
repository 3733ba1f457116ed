"""Captions of images from features of a pre-trained network, in plain torch.

An image is P rows of D features: positions of a convolutional layer, or a single row.

Show and Tell (Vinyals et al. 2015): the image is what an LSTM reads first, and only once::

    x_{-1} = W_i mean_p(a_p) + b_i;  x_t = E y_t                                   (Eq. 10, 11)
    h_t = LSTM(x_{t-1}, h_{t-1});  P(y_t) = softmax(W_o h_t + b_o)                  (Eq. 12)

Show, Attend and Tell (Xu et al. 2015), soft attention::

    h_0 = tanh(W_h mean_p(a_p) + b_h), and the same for the memory cell             (Sec. 3.1.2)
    e_tp = energy . tanh(V a_p + b + W_q h_{t-1});  alpha_t = softmax(e_t)          (Eq. 4, 5)
    z_t = sum_p alpha_tp a_p                                                        (Eq. 13)
    h_t = LSTM([E y_{t-1} ; z_t], h_{t-1})                                          (Eq. 1)
    P(y_t) = softmax(L_o (E y_{t-1} + L_h h_t + L_z z_t) + b_o)                     (Eq. 7)

Deviation: Xu et al. also scale z_t by a number beta_t between 0 and 1 and add a term that wants
every position to be looked at; the implementation that the paper builds on has neither.

Dimensions: B images, R = B * K rows of beams, P positions, D features, T steps, E embedding, H
units, A attention, V vocabulary. Masks are bool, True = padding.
"""

from dataclasses import dataclass
from typing import Optional, Tuple, cast

import torch
from torch import Tensor, nn

from ...common.decoding import PER_SENTENCE, Cache, per_row
from ...common.dropout import RetainsDropout
from ...common.layers import embedding, linear
from ...common.lstm import LSTM
from ...common.padding import mean_of_real
from ...common.sizes import check_sizes
from ..attentive.layer import AttentiveDecoder, AttentiveLSTM


@dataclass(frozen=True)
class CaptionSize:
    """Widths. feature_size: D. Raises ValueError, naming the option, for values out of range."""

    feature_size: int
    embed_dim: int
    hidden_size: int
    dropout: float

    def __post_init__(self) -> None:
        check_sizes(self)


@dataclass(frozen=True)
class AttentiveSize(CaptionSize):
    """The same with the width of the attention, A."""

    attention_size: int


class Annotations(nn.Module):
    """The encoder: the features as they are."""

    def __init__(self, feature_size: int):
        super().__init__()
        self.feature_size = feature_size

    def forward(self, features: Tensor, padding: Tensor) -> Tuple[Tensor, Tensor]:
        """Return features (B, P, D) and padding (B, P); ValueError for another D."""
        if features.size(2) != self.feature_size:
            raise ValueError(
                f"--feature-size {self.feature_size}: the files have {features.size(2)} features"
            )
        return features, padding


class PlainDecoder(RetainsDropout, nn.Module):
    """Show and Tell.

    Args:
        size: D, E, H and the dropout rate.
        vocab_size: V.
        padding_index: index of the padding symbol.
    """

    def __init__(self, size: CaptionSize, vocab_size: int, padding_index: int):
        super().__init__()
        self.dropout = size.dropout
        self.image = linear(size.feature_size, size.embed_dim)  # W_i, b_i
        self.embedding = embedding(vocab_size, size.embed_dim, padding_index)
        self.layer = LSTM(size.embed_dim, size.hidden_size)
        self.output = linear(size.hidden_size, vocab_size)  # W_o, b_o

    def inputs(self, prev_tokens: Tensor, annotations: Tensor, padding: Tensor) -> Tensor:
        """Return the image, then the words: (R, T) -> (R, 1 + T, E)."""
        image = self.image(mean_of_real(annotations, padding))  # (B, E)
        image = per_row(image, prev_tokens.size(0))  # (R, E)
        return self.drop(torch.cat([image.unsqueeze(1), self.embedding(prev_tokens)], dim=1))

    def unroll(
        self, prev_tokens: Tensor, annotations: Tensor, padding: Tensor, literal: bool = False
    ) -> Tuple[Tensor, Tensor]:
        """Return h of whole captions (R, T) with dropout and without, (R, T, H)."""
        inputs = self.inputs(prev_tokens, annotations, padding)
        states = self.layer.literal(inputs) if literal else self.layer(inputs)
        states = states[:, 1:]  # the first one has read the image alone
        return self.drop(states), states

    def decode(
        self,
        prev_tokens: Tensor,
        annotations: Tensor,
        padding: Tensor,
        cache: Optional[Cache] = None,
        need_weights: bool = False,
    ) -> Tuple[Tensor, None]:
        """Return h (R, T, H), which enters the softmax after each of ``prev_tokens`` (R, T).

        With a cache of the newest token alone, (R, 1, H). The arguments are those of
        ``AttentiveDecoder.decode``; in place of an attention None is returned.
        """
        if cache is None:
            return self.unroll(prev_tokens, annotations, padding)[0], None
        # the first step of a search reads two positions: the image and the first symbol
        if not cache:
            cache[PER_SENTENCE + "padding"] = padding  # tells how many sentences there are
            inputs, before = self.inputs(prev_tokens[:, -1:], annotations, padding), None
        else:
            inputs = self.drop(self.embedding(prev_tokens[:, -1:]))
            state, memory = cast(Tensor, cache["state"]), cast(Tensor, cache["memory"])
            before = (state.unsqueeze(0), memory.unsqueeze(0))
        states, (state, memory) = self.layer.carry(inputs, before)
        # torch's LSTM has a first axis for layers
        cache["state"], cache["memory"] = state.squeeze(0), memory.squeeze(0)
        return self.drop(states[:, -1:]), None

    def logits(self, states: Tensor) -> Tensor:
        """Return the logits: (R, T, H) -> (R, T, V)."""
        return self.output(states)


class CaptionDecoder(AttentiveDecoder):
    """Show, Attend and Tell.

    Args:
        size: D, E, H, A and the dropout rate.
        vocab_size: V.
        padding_index: index of the padding symbol.
    """

    def __init__(self, size: AttentiveSize, vocab_size: int, padding_index: int):
        features, width, units = size.feature_size, size.embed_dim, size.hidden_size
        super().__init__(
            embedding(vocab_size, width, padding_index),
            AttentiveLSTM(width, features, units, size.attention_size, first=0),
            linear(width, vocab_size),  # L_o, b_o
            size.dropout,
        )
        self.initial_state = linear(features, units)  # W_h, b_h
        self.initial_memory = linear(features, units)
        self.readout_state = linear(units, width, bias=False)  # L_h
        self.readout_context = linear(features, width, bias=False)  # L_z

    def initial(self, annotations: Tensor, padding: Tensor) -> Tuple[Tensor, Tensor]:
        """Return h_0 and m_0 (B, H) of the image's mean."""
        image = mean_of_real(annotations, padding)  # (B, D)
        return torch.tanh(self.initial_state(image)), torch.tanh(self.initial_memory(image))

    def readout(self, vectors: Tensor, states: Tensor, contexts: Tensor) -> Tensor:
        """Return E y_{t-1} + L_h h_t + L_z z_t, (R, T, E)."""
        return vectors + self.readout_state(states) + self.readout_context(contexts)
