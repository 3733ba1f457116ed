"""The LSTM cell, and LSTMs over padded sequences; gates in the order i, f, c, o.

    m' = sigmoid(f) * m + sigmoid(i) * tanh(c);  h' = sigmoid(o) * tanh(m')

Dimensions: B sentences, S positions, I input, H units. Masks are bool, True = padding.
"""

from typing import List, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .autocast import lstm_precision
from .recurrent import Bidirectional, OneBias, sigmoid_backward, tanh_backward


def lstm_cell(gates: Tensor, memory: Tensor) -> Tuple[Tensor, Tensor]:
    """Return h' and m' (B, H) of the sums inside the gates (B, 4H) and the memory m (B, H)."""
    i, f, c, o = gates.chunk(4, dim=1)  # (B, H) each
    memory = torch.addcmul(torch.sigmoid(f) * memory, torch.sigmoid(i), torch.tanh(c))
    return torch.sigmoid(o) * torch.tanh(memory), memory


def lstm_cell_forward(
    sums: Tensor, memory: Tensor, gates: Tensor, new_memory: Tensor, new_state: Tensor
) -> None:
    """Fill in what ``lstm_cell`` returns, and what ``lstm_cell_backward`` reads.

    Args:
        sums: inside the gates (B, 4H).
        memory: m (B, H).
        gates: to be filled with i, f, c, o behind their sigmoid or tanh (B, 4H).
        new_memory, new_state: to be filled with m' and h' (B, H).
    """
    units = memory.size(1)
    torch.sigmoid(sums, out=gates)
    # c, the third, has a tanh in place of the sigmoid
    torch.tanh(sums[:, 2 * units : 3 * units], out=gates[:, 2 * units : 3 * units])
    i, f, c, o = gates.chunk(4, dim=1)
    torch.mul(i, c, out=new_memory).addcmul_(f, memory)
    torch.tanh(new_memory, out=new_state).mul_(o)


def lstm_cell_backward(
    grad_state: Tensor,
    grad_memory: Tensor,
    gates: Tensor,
    memory: Tensor,
    new_memory: Tensor,
    grad_gates: Tensor,
) -> Tensor:
    """Fill in the gradient of the sums inside the gates and return that of the memory m (B, H).

    Args:
        grad_state: of h' (B, H).
        grad_memory: of m' (B, H), but for what h' passes on.
        gates: i, f, c, o behind their sigmoid or tanh (B, 4H).
        memory, new_memory: m and m' (B, H).
        grad_gates: to be filled (B, 4H).
    """
    # computed again: a loop that keeps m' need not keep its tanh
    squashed = torch.tanh(new_memory)
    i, f, c, o = gates.chunk(4, dim=1)
    grad_i, grad_f, grad_c, grad_o = grad_gates.chunk(4, dim=1)
    # h' = o * tanh(m')
    grad_o.copy_(sigmoid_backward(grad_state * squashed, o))
    grad_memory = grad_memory + tanh_backward(grad_state * o, squashed)
    # m' = f * m + i * c
    grad_i.copy_(sigmoid_backward(grad_memory * c, i))
    grad_f.copy_(sigmoid_backward(grad_memory * memory, f))
    grad_c.copy_(tanh_backward(grad_memory * i, c))
    return grad_memory * f


class LSTM(OneBias, nn.LSTM):
    """One LSTM layer in one direction, zero initial state; the forget gate starts open."""

    def reset_parameters(self) -> None:
        """Set Xavier values for W, orthogonal ones for each gate's U, zero biases, 1 for f."""
        nn.init.xavier_uniform_(self.weight_ih_l0)
        for part in self.weight_hh_l0.chunk(4):
            nn.init.orthogonal_(part)
        nn.init.zeros_(self.bias_ih_l0)
        nn.init.zeros_(self.bias_hh_l0)
        # the gate f, second of four
        nn.init.ones_(self.bias_ih_l0[self.hidden_size : 2 * self.hidden_size])

    def forward(self, inputs: Tensor) -> Tensor:  # type: ignore[override]  # no states, one output
        """Return h (B, S, H) of (B, S, I). Padding has to stand after the real positions."""
        return self.carry(inputs)[0]

    def carry(
        self, inputs: Tensor, before: Optional[Tuple[Tensor, Tensor]] = None
    ) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        """Return h (B, S, H) and the last h and m (1, B, H), beginning with h and m ``before``."""
        with lstm_precision(self.weight_ih_l0) as converted:
            states = before and (converted(before[0]), converted(before[1]))
            return super().forward(converted(inputs), states)

    def literal(self, inputs: Tensor) -> Tensor:
        """Return h (B, S, H), step by step: the specification of ``forward``."""
        state = memory = inputs.new_zeros(inputs.size(0), self.hidden_size)
        states: List[Tensor] = []
        for position in range(inputs.size(1)):
            gates = F.linear(inputs[:, position], self.weight_ih_l0, self.bias_ih_l0)
            state, memory = lstm_cell(gates + F.linear(state, self.weight_hh_l0), memory)
            states.append(state)
        return torch.stack(states, dim=1)


class BidirectionalLSTM(Bidirectional):
    """Two ``LSTM``, one in each direction: (B, S, I) and padding (B, S) -> (B, S, 2H)."""

    unit = LSTM
