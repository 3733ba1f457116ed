"""The penalty of twin networks (Serdyuk et al., ICLR 2018) and what Table 1 compares it with.

Both networks predict x_1 .. x_T, the backward one in reverse; h^f_t and h^b_t are their states that
predict x_t (Sec. 2)::

    L_t = || g(h^f_t) - h^b_t ||                       no gradient goes into h^b_t
    minimise  sum_t [ -log P_f(x_t | x_<t) - log P_b(x_t | x_>t) + alpha L_t ]

where g is a learnt affine map or the identity. Rows of Table 1:

    TwinNet             h^b_t of the backward network
    AR                  h^b_t = 0
    Gaussian noise      h^b_t ~ N(0, 1) in each dimension, drawn anew for every token
    stabilising norm    L_t = (||h^f_t|| - ||h^f_{t-1}||)^2, t = 2 .. T, without any h^b

The last three need no backward network. With AR and noise g is the identity: a learnt one would
become zero, whatever h^f is.

Deviation: the paper writes the Euclidean norm; the authors' code takes the mean over dimensions of
the squared difference, (1/D) sum_d (g(h^f_t) - h^b_t)_d^2, which is the default here ("mse").

Dimensions: B sentences, T target positions, D state. Masks are bool.
"""

from typing import Optional

import torch
from torch import Tensor, nn

from ..common.layers import linear

MAPS = ("affine", "identity")
DISTANCES = ("mse", "euclidean")
TARGETS = ("backward", "zeros", "noise")


def distance(mapped: Tensor, target: Tensor, kind: str = "mse") -> Tensor:
    """Return L_t (B, T) of g(h^f_t) and h^b_t, both (B, T, D); in float32 or better.

    The gradient of the Euclidean norm at a difference of zero is zero.
    """
    difference = _precise(mapped) - _precise(target)
    if kind == "mse":  # (1/D) sum_d, the authors' code
        return difference.square().mean(dim=2)
    return torch.linalg.vector_norm(difference, dim=2)


def stabilising_norm(states: Tensor) -> Tensor:
    """Return (||h_t|| - ||h_{t-1}||)^2 of h (B, T, D), zero at the first position: (B, T).

    Krueger and Memisevic (2015). The state before the first is left out: a Transformer has none.
    """
    norms = torch.linalg.vector_norm(_precise(states), dim=2)  # (B, T)
    steps = norms[:, 1:] - norms[:, :-1]  # (B, T - 1)
    return torch.cat([torch.zeros_like(norms[:, :1]), steps.square()], dim=1)


def _precise(states: Tensor) -> Tensor:
    """Return states (B, T, D) in single precision or better: squares of halves overflow."""
    return states.to(torch.promote_types(states.dtype, torch.float32))


class TwinPenalty(nn.Module):
    """L_t for every token; holds g.

    Args:
        target: one of ``TARGETS``, what h^b is.
        kind: one of ``DISTANCES``.
        stabilise: the stabilising norm instead of a distance; the other arguments do not count.
        state_size: D, for a learnt affine g; None for the identity.
    """

    def __init__(
        self,
        target: str = "backward",
        kind: str = "mse",
        stabilise: bool = False,
        state_size: Optional[int] = None,
    ):
        super().__init__()
        self.target, self.kind, self.stabilise = target, kind, stabilise
        # g; the optimiser finds its parameters in the criterion
        self.map = nn.Identity() if state_size is None else linear(state_size, state_size)

    @property
    def has_backward_states(self) -> bool:
        """True if L_t is computed from the states of a backward network."""
        return self.target == "backward" and not self.stabilise

    def forward(self, states: Tensor, matched: Tensor, aligned: Optional[Tensor] = None) -> Tensor:
        """Return L_t (B, T), zero where not ``matched``.

        Args:
            states: h^f (B, T, D).
            matched: (B, T), True at the tokens that count.
            aligned: h^b in the order of ``states`` (B, T, D), if ``has_backward_states``; what is
                not matched there may be anything.
        """
        if self.stabilise:
            penalty = stabilising_norm(states)
        else:
            penalty = distance(self.map(states), self._target(states, aligned), self.kind)
        return penalty.masked_fill(~matched, 0.0)

    def _target(self, states: Tensor, aligned: Optional[Tensor]) -> Tensor:
        """Return h^b (B, T, D)."""
        if self.target == "backward":
            assert aligned is not None
            return aligned.detach()
        if self.target == "noise":
            return torch.randn_like(states)  # anew for every token and update
        return torch.zeros_like(states)  # AR: the norm of the states
