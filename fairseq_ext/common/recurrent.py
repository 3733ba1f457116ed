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


def gru_cell(gates_x: Tensor, gates_h: Tensor, state: Tensor) -> Tensor:
    """Return h' (B, H) of one step from W x + b (B, 3H), U h (B, 3H) and h (B, H)."""
    reset_x, update_x, candidate_x = gates_x.chunk(3, dim=-1)
    reset_h, update_h, candidate_h = gates_h.chunk(3, dim=-1)
    reset = torch.sigmoid(reset_x + reset_h)
    update = torch.sigmoid(update_x + update_h)
    candidate = torch.tanh(candidate_x + reset * candidate_h)
    # u h + (1 - u) c, with one product
    return candidate + update * (state - candidate)  # (B, H)


class GRU(nn.GRU):
    """One layer in one direction, zero initial state, without a bias in the recurrence.

    torch.nn.GRU has two biases; those of the gates add up, and the one inside r * (U h + b) is not
    in the papers. Here b_hh is zero and not trained, so that torch's kernels can be used.

    Args:
        input_size: I.
        hidden_size: H.
    """

    weight_ih_l0: Tensor
    weight_hh_l0: Tensor
    bias_ih_l0: Tensor
    bias_hh_l0: Tensor

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__(input_size, hidden_size, batch_first=True)
        self.bias_hh_l0.requires_grad_(False)
        self.reset_parameters()

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
        """(B, S, I) -> (B, S, H). Padding has to stand after the real positions."""
        return super().forward(inputs)[0]

    def literal(self, inputs: Tensor) -> Tensor:
        """Return the same, step by step: the specification that ``forward`` is tested against."""
        state = inputs.new_zeros(inputs.size(0), self.hidden_size)  # (B, H)
        states: List[Tensor] = []
        for position in range(inputs.size(1)):
            gates_x = F.linear(inputs[:, position], self.weight_ih_l0, self.bias_ih_l0)
            state = gru_cell(gates_x, F.linear(state, self.weight_hh_l0), state)
            states.append(state)
        return torch.stack(states, dim=1)  # (B, S, H)


def leading_padding(tokens: Tensor, padding_index: int) -> Tensor:
    """Return the number of padding symbols in front of each row: (B, S) -> (B, 1)."""
    # the product is 1 as long as no real word has come
    return tokens.eq(padding_index).long().cumprod(dim=1).sum(dim=1, keepdim=True)


def align_left(tokens: Tensor, padding_index: int) -> Tensor:
    """Move padding from the front of each row to its end; (B, S) -> (B, S)."""
    position = torch.arange(tokens.size(1), device=tokens.device)
    # rows are rotated by their leading padding: the order of the words stays as it is
    return tokens.gather(1, (position + leading_padding(tokens, padding_index)) % tokens.size(1))


def put_back(values: Tensor, leading: Tensor, dim: int) -> Tensor:
    """Undo ``align_left`` for what was made of its result.

    Args:
        values: (R, ..); their dimension ``dim`` is that of the positions, S.
        leading: ``leading_padding`` of the tokens, (R, 1).
    """
    position = torch.arange(values.size(dim), device=values.device)
    index = (position - leading) % values.size(dim)  # (R, S)
    shape = [1] * values.dim()
    shape[0], shape[dim] = index.shape
    return values.gather(dim, index.view(shape).expand_as(values))


def reversal(padding: Tensor) -> Tensor:
    """Return positions (B, S) that reverse every sentence within its length.

    Padding stays at the end.

    The permutation is its own inverse: ``reorder(reorder(x, p), p)`` is x.
    """
    length = (~padding).sum(dim=1, keepdim=True)  # (B, 1)
    position = torch.arange(padding.size(1), device=padding.device)
    # behind a sentence the modulus counts down from the last position: padding stays padding
    return (length - 1 - position) % padding.size(1)


def reorder(rows: Tensor, positions: Tensor) -> Tensor:
    """Return rows[b, positions[b, s]] at [b, s]; (B, S, I), (B, S) -> (B, S, I)."""
    size, length, width = rows.shape
    first = length * torch.arange(size, device=rows.device).unsqueeze(1)  # (B, 1)
    # whole rows of I numbers are copied; ``gather`` would need an index for each number
    flat = rows.reshape(size * length, width)
    return flat.index_select(0, (first + positions).view(-1)).view(size, length, width)


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
        """(B, S, I) and padding (B, S), at the end of each row, -> (B, S, 2H)."""
        positions = reversal(padding)
        reverse = reorder(inputs, positions)  # (B, S, I)
        if literal:
            ahead, back = self.forwards.literal(inputs), self.backwards.literal(reverse)
        else:
            ahead, back = self.forwards(inputs), self.backwards(reverse)
        # backward states return to the places of their words before they are joined
        return torch.cat([ahead, reorder(back, positions)], dim=2)


class BidirectionalGRU(Bidirectional):
    unit = GRU
