"""What the steps of a loop have in common, with gradients that are made once, after the loop.

When autograd goes back through a loop, every step adds its own product to the gradient of each
matrix. Here a step notes the two factors instead, and the sum over all steps is one product.

Dimensions: R rows, B sentences, S positions, C their width, I inputs, O outputs, H units.
"""

from typing import Any, Callable, List, Optional, Tuple

import torch
from torch import Tensor

from ...common.attention_gradient import by_position
from ...common.autocast import without_autocast
from ...common.lstm import lstm_cell_backward, lstm_cell_forward
from ...common.products import repeated_linear

Pairs = List[Tuple[Tensor, Tensor]]
Map = Callable[[Tensor], Tensor]


class _Noted(torch.autograd.Function):
    """The matrix as it is; its gradient is what ``total`` makes of the factors that were noted."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, noted: Pairs, total: Callable[[Pairs], Tensor]) -> Tensor:
        # the steps send no gradient along this edge: None arrives
        ctx.set_materialize_grads(False)
        ctx.noted, ctx.total = noted, total
        # another tensor than the matrix, so that autograd puts this node between
        return matrix.view_as(matrix)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, _nothing: Any) -> Tuple[Optional[Tensor], None, None]:
        # emptied: a second backward pass through the loop notes its factors anew
        noted = ctx.noted[:]
        ctx.noted.clear()
        if not noted:
            return None, None, None
        with torch.autocast(noted[0][0].device.type, enabled=False):
            return ctx.total(noted), None, None


class _Step(torch.autograd.Function):
    """ahead(x); its gradient is back(g), and the pair (g, x) or (x, g) is noted."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        _matrix: Tensor,
        ahead: Map,
        back: Map,
        noted: Pairs,
        x_first: bool,
    ) -> Tensor:
        # ``_matrix`` is there for the graph alone: its node runs when all steps have run
        ctx.save_for_backward(x)
        ctx.back, ctx.noted, ctx.x_first = back, noted, x_first
        return ahead(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    @without_autocast
    def backward(ctx: Any, grad: Tensor) -> Tuple[Optional[Tensor], ...]:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        ctx.noted.append((x, grad) if ctx.x_first else (grad, x))
        # only x gets a gradient here; the matrix has its own from ``total``
        return ctx.back(grad) if ctx.needs_input_grad[0] else None, None, None, None, None, None


def linear_steps(weight: Tensor, rows: int) -> Map:
    """Return the function x -> x weight^T of x (R, I), for the steps of a loop; weight (O, I)."""
    noted: Pairs = []
    # whose gradient autograd asks for when all steps have noted theirs
    weight_node = _Noted.apply(weight, noted, _over_rows)
    ahead = repeated_linear(weight.detach(), rows)
    back = repeated_linear(weight.detach().t(), rows)
    return lambda x: _Step.apply(x, weight_node, ahead, back, noted, False)


def _over_rows(noted: Pairs) -> Tensor:
    """Return the gradient (O, I) of a weight: the sum over steps of g x^T, as one product."""
    grads, inputs = (torch.cat(part) for part in zip(*noted))  # (T R, O), (T R, I)
    return grads.t() @ inputs


def position_steps(vectors: Tensor) -> Tuple[Map, Map]:
    """Return two functions of one array (B, S, C), for the steps of a loop.

    Returns:
        x (B, C) -> x . vectors_s (B, S), and a (B, S) -> sum_s a_s vectors_s (B, C).
    """
    noted: Pairs = []
    vectors_node, fixed = _Noted.apply(vectors, noted, _over_positions), vectors.detach()

    # each is the other's derivative: d (x . v) / dx = v, and d (sum a v) / da = v
    def compare(x: Tensor) -> Tensor:
        """Return x . vectors_s (B, S)."""
        return by_position(x, fixed)

    def mix(weights: Tensor) -> Tensor:
        """Return sum_s a_s vectors_s (B, C)."""
        return torch.bmm(weights.unsqueeze(1), fixed).squeeze(1)

    return (
        lambda x: _Step.apply(x, vectors_node, compare, mix, noted, False),
        lambda weights: _Step.apply(weights, vectors_node, mix, compare, noted, True),
    )


def _over_positions(noted: Pairs) -> Tensor:
    """Return the gradient (B, S, C) of the array, the sum over steps as one product."""
    by_place, by_width = zip(*noted)  # (B, S), (B, C)
    # (B, S, T) times (B, T, C)
    return torch.bmm(torch.stack(by_place, dim=2), torch.stack(by_width, dim=1))


class _LSTMCell(torch.autograd.Function):
    """``lstm_cell_step`` with its gradient, ``lstm_cell_backward``."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, memory: Tensor) -> Tuple[Tensor, Tensor]:
        active, after, state = (torch.empty_like(like) for like in (gates, memory, memory))
        lstm_cell_forward(gates, memory, active, after, state)
        ctx.save_for_backward(active, memory, after)
        return state, after

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(  # type: ignore[override]  # torch declares (ctx, *grads)
        ctx: Any, grad_state: Tensor, grad_after: Tensor
    ) -> Tuple[Tensor, Tensor]:
        active, memory, after = ctx.saved_tensors
        grad = torch.empty_like(active)
        return grad, lstm_cell_backward(grad_state, grad_after, active, memory, after, grad)


def lstm_cell_step(gates: Tensor, memory: Tensor) -> Tuple[Tensor, Tensor]:
    """Return h' and m' (B, H) as ``common.lstm.lstm_cell`` does, by one node of autograd's graph.

    The values are those of ``lstm_cell`` but for the last bits.
    """
    return _LSTMCell.apply(gates, memory)
