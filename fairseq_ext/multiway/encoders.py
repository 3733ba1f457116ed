"""What may read the source before W_adp, (B, S, D) -> (B, S, 2G), by its name in --encoder-type.

Encoders may be of other architectures than the decoders and than each other (Firat et al. 2016,
Sec. 4): the attention sees nothing but the annotations h_i = W_adp v_i + b_adp (Eq. 9), whatever
makes v_i.

Dimensions: B sentences, S source positions, D embedding, G units (each direction), C = 2G channels.
Masks are bool, True = padding.
"""

from typing import Callable, Dict

import torch
from torch import Tensor, nn

from ..common.layers import linear
from ..common.lstm import BidirectionalLSTM
from ..common.recurrent import BidirectionalGRU

LAYERS = 6
WIDTH = 3  # positions that a filter sees


class Convolutions(nn.Module):
    """Residual convolutions (Gehring et al. 2017, "A Convolutional Encoder Model", Sec. 3).

        v^0_i = W_in e_i + b_in
        v^l_i = v^{l-1}_i + tanh(sum_{k=-1..1} F^l_k v^{l-1}_{i+k} + b^l),   l = 1 .. 6

    where e_i is the embedding of the source's word i (D,), v^l_i (C,), and v outside of the
    sentence is zero. An annotation sees six words to each side, the decoder's initial state the
    first seven words.

    Deviation: the paper adds vectors of positions to e_i; here there are none, and sentences have
    no greatest length.

    Args:
        input_size: D.
        hidden_size: G; there are C = 2G channels, as many as a bidirectional layer has units.
    """

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        channels = 2 * hidden_size
        self.project = linear(input_size, channels)  # W_in, b_in
        self.filters = nn.ModuleList(
            nn.Conv1d(channels, channels, WIDTH, padding=WIDTH // 2) for _ in range(LAYERS)
        )
        for layer in self.filters:
            assert isinstance(layer, nn.Conv1d) and layer.bias is not None
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, inputs: Tensor, padding: Tensor, literal: bool = False) -> Tensor:
        """Return v (B, S, C), zero at padding, of (B, S, D) and padding (B, S) at the end of rows.

        ``literal`` changes nothing: there are no steps.
        """
        outside = padding.unsqueeze(1)  # (B, 1, S)
        values = self.project(inputs).transpose(1, 2).masked_fill(outside, 0)  # (B, C, S)
        for layer in self.filters:
            # a filter at the last word would see what the one before wrote behind it
            values = (values + torch.tanh(layer(values))).masked_fill(outside, 0)
        return values.transpose(1, 2)


ENCODERS: Dict[str, Callable[[int, int], nn.Module]] = {
    "gru": BidirectionalGRU,
    "lstm": BidirectionalLSTM,
    "convolution": Convolutions,
}
