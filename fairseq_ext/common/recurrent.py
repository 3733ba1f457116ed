"""Gated recurrent units over padded sequences.

The unit (Cho et al. 2014, in the form of torch.nn.GRU, the reset gate after the product)::

    r = sigmoid(W_r x + b_r + U_r h)          reset gate
    u = sigmoid(W_u x + b_u + U_u h)          update gate
    c = tanh(W_c x + b_c + r * (U_c h))       candidate
    h' = u * h + (1 - u) * c

Dimensions: B sentences, S positions, I input, H units. Gates stand side by side in the order
r, u, c. Masks are bool, True = padding.
"""

from typing import Any, Callable, List

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .padding import reorder, reversal

# (gradient of the output, output) -> gradient of the input
sigmoid_backward, tanh_backward = torch.ops.aten.sigmoid_backward, torch.ops.aten.tanh_backward


def gru_cell(gates_x: Tensor, gates_h: Tensor, state: Tensor) -> Tensor:
    """Return h' (B, H) of one step from W x + b (B, 3H), U h (B, 3H) and h (B, H)."""
    reset_x, update_x, candidate_x = gates_x.chunk(3, dim=-1)
    reset_h, update_h, candidate_h = gates_h.chunk(3, dim=-1)
    reset = torch.sigmoid(reset_x + reset_h)
    update = torch.sigmoid(update_x + update_h)
    candidate = torch.tanh(candidate_x + reset * candidate_h)
    # u h + (1 - u) c, with one product
    return candidate + update * (state - candidate)  # (B, H)


class OneBias(nn.RNNBase):
    """One layer in one direction, whose recurrence has no bias: a base beside nn.GRU or nn.LSTM.

    torch's layers have two. Here b_hh is zero and not trained, so that torch's kernels can be used;
    beside b_ih it would be the same parameter once more, which learns twice as fast.

    Args:
        input_size: I.
        hidden_size: H.
    """

    weight_ih_l0: Tensor
    weight_hh_l0: Tensor
    bias_ih_l0: Tensor
    bias_hh_l0: Tensor

    def __init__(self, input_size: int, hidden_size: int):
        # the next class in line is torch's layer, which tells ``nn.RNNBase`` its mode itself
        layer: Any = super()
        layer.__init__(input_size, hidden_size, batch_first=True)
        self.bias_hh_l0.requires_grad_(False)
        # again after torch's constructor: without it the same seed would begin with other values
        self.reset_parameters()


class GRU(OneBias, nn.GRU):
    """One GRU layer in one direction, zero initial state.

    The bias inside r * (U h + b), which torch's has, is not in the papers.
    """

    def reset_parameters(self) -> None:
        """Set Xavier values for W; orthogonal for each gate's U; zero biases."""
        nn.init.zeros_(self.bias_ih_l0)
        nn.init.zeros_(self.bias_hh_l0)
        # each gate by itself: the three stand side by side, and are not one matrix of 3H outputs
        for part in self.weight_ih_l0.chunk(3):
            nn.init.xavier_uniform_(part)
        for part in self.weight_hh_l0.chunk(3):
            nn.init.orthogonal_(part)

    def forward(self, inputs: Tensor) -> Tensor:  # type: ignore[override]  # no states, one output
        """Return h (B, S, H) of (B, S, I). Padding has to stand after the real positions."""
        return super().forward(inputs)[0]

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Return h' (B, H) of x (B, I) and h (B, H)."""
        gates_x = F.linear(inputs, self.weight_ih_l0, self.bias_ih_l0)
        return gru_cell(gates_x, F.linear(state, self.weight_hh_l0), state)

    def literal(self, inputs: Tensor) -> Tensor:
        """Return h (B, S, H), step by step: the specification of ``forward``."""
        state = inputs.new_zeros(inputs.size(0), self.hidden_size)  # (B, H)
        states: List[Tensor] = []
        for position in range(inputs.size(1)):
            state = self.step(inputs[:, position], state)
            states.append(state)
        return torch.stack(states, dim=1)  # (B, S, H)


class Bidirectional(nn.Module):
    """A layer that reads forwards and one that reads backwards, side by side.

    The backward one reads each sentence reversed within its own length, so that neither sees
    padding before a real word and no lengths have to leave the device.

    unit: the layer's class, such as ``GRU``; a subclass names it.
    """

    unit: Callable[[int, int], Any]

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.forwards = self.unit(input_size, hidden_size)
        self.backwards = self.unit(input_size, hidden_size)

    def forward(self, inputs: Tensor, padding: Tensor, literal: bool = False) -> Tensor:
        """Return h both ways (B, S, 2H) of (B, S, I); padding (B, S), at the end of each row."""
        positions = reversal(padding)
        reverse = reorder(inputs, positions)  # (B, S, I)
        if literal:
            ahead, back = self.forwards.literal(inputs), self.backwards.literal(reverse)
        else:
            ahead, back = self.forwards(inputs), self.backwards(reverse)
        # backward states return to the places of their words before they are joined
        return torch.cat([ahead, reorder(back, positions)], dim=2)


class BidirectionalGRU(Bidirectional):
    """Two ``GRU``, one in each direction: (B, S, I) and padding (B, S) -> (B, S, 2H)."""

    unit = GRU
