"""LSTMs over padded sequences; gates in the order i, f, c, o.

    m' = sigmoid(f) * m + sigmoid(i) * tanh(c);  h' = sigmoid(o) * tanh(m')

Dimensions: B sentences, S positions, I input, H units. Masks are bool, True = padding.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..common.recurrent import reorder, reversal


class LSTM(nn.LSTM):
    """One layer in one direction, zero initial state; the forget gate starts open.

    torch's two biases add up; the second stays zero.

    Args:
        input_size: I.
        hidden_size: H.
    """

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__(input_size, hidden_size, batch_first=True)
        self.bias_hh_l0.requires_grad_(False)
        self.reset_parameters()

    def reset_parameters(self):
        """Xavier for the inputs, orthogonal for each gate's recurrence, zero biases but one."""
        nn.init.xavier_uniform_(self.weight_ih_l0)
        for part in self.weight_hh_l0.chunk(4):
            nn.init.orthogonal_(part)
        nn.init.zeros_(self.bias_ih_l0)
        nn.init.zeros_(self.bias_hh_l0)
        nn.init.ones_(self.bias_ih_l0[self.hidden_size : 2 * self.hidden_size])

    def literal(self, inputs: Tensor) -> Tensor:
        """(B, S, I) -> h (B, S, H), step by step: what ``forward`` returns first."""
        state = memory = inputs.new_zeros(inputs.size(0), self.hidden_size)
        states = []
        for position in range(inputs.size(1)):
            gates = F.linear(inputs[:, position], self.weight_ih_l0, self.bias_ih_l0)
            i, f, c, o = (gates + F.linear(state, self.weight_hh_l0)).chunk(4, dim=1)
            memory = torch.sigmoid(f) * memory + torch.sigmoid(i) * torch.tanh(c)
            state = torch.sigmoid(o) * torch.tanh(memory)
            states.append(state)
        return torch.stack(states, dim=1)


class BidirectionalLSTM(nn.Module):
    """An LSTM that reads forwards and one that reads backwards, side by side."""

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.forwards, self.backwards = LSTM(input_size, hidden_size), LSTM(input_size, hidden_size)

    def forward(self, inputs: Tensor, padding: Tensor, literal: bool = False) -> Tensor:
        """(B, S, I) and padding (B, S), at the end of each row, -> (B, S, 2H)."""
        positions = reversal(padding)
        reverse = reorder(inputs, positions)
        if literal:
            ahead, back = self.forwards.literal(inputs), self.backwards.literal(reverse)
        else:
            ahead, back = self.forwards(inputs)[0], self.backwards(reverse)[0]
        return torch.cat([ahead, reorder(back, positions)], dim=2)
