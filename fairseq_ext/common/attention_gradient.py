"""Backward pass of additive attention's scores, a step at a time.

Dimensions: B sentences, S source positions, A attention.
"""

from typing import Tuple

import torch
from torch import Tensor


class KeysGradient:
    """Gradients of what enters energy . tanh(keys_i + query), added up over the steps.

    With y = tanh(keys + query) and the gradient g_i of e_i, the gradient of y's argument is
    g_i energy (1 - y_i^2): y^2 is the only array of size (B, S, A) that is needed.

    Args:
        keys: (B, S, A).
        energy: (A,).
    """

    def __init__(self, keys: Tensor, energy: Tensor):
        self.keys, self.energy = keys, energy
        self.hidden = torch.empty_like(keys)
        self.squares = torch.zeros_like(keys)  # sum over steps of g_i y_i^2
        self.scores = torch.zeros_like(keys[:, :, 0])  # sum over steps of g_i
        self.grad_energy = torch.zeros_like(energy)

    def add(self, query: Tensor, grad_e: Tensor) -> Tensor:
        """Take in a step: query (B, A), g (B, S); returns the gradient of the query (B, A)."""
        hidden = torch.add(self.keys, query.unsqueeze(1), out=self.hidden).tanh_()
        self.grad_energy += grad_e.flatten() @ hidden.flatten(0, 1)
        square = hidden.mul_(hidden)
        self.squares.addcmul_(grad_e.unsqueeze(2), square)
        self.scores += grad_e
        weighted = torch.bmm(grad_e.unsqueeze(1), square).squeeze(1)  # (B, A)
        return self.energy * (grad_e.sum(dim=1, keepdim=True) - weighted)

    def result(self) -> Tuple[Tensor, Tensor]:
        """Gradients of the keys (B, S, A) and of the energy (A,); call once, at the end."""
        grad_keys = self.squares.neg_().add_(self.scores.unsqueeze(2)).mul_(self.energy)
        return grad_keys, self.grad_energy
