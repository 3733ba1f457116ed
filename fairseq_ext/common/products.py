"""Products with a matrix that stays the same over the steps of a loop."""

from typing import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

try:  # what torch.compile uses for frozen weights; torch without oneDNN has neither
    _arranged = torch.ops.mkldnn._reorder_linear_weight
    _linear = torch.ops.mkldnn._linear_pointwise
except AttributeError:
    _arranged = _linear = None
WORTH_ARRANGING = 1 << 17  # numbers of a matrix; smaller ones gain nothing


def repeated_linear(weight: Tensor, rows: int) -> Callable[[Tensor], Tensor]:
    """The function x -> x weight^T, to be called many times.

    In single precision on CPUs oneDNN keeps the matrix in the order in which it reads it, so that
    this is done once and not at every call (measured: 100 instead of 80 GFLOP/s). Elsewhere it is
    ``F.linear``. No gradients: for use inside of autograd functions.

    Args:
        weight: (O, I), in any memory layout.
        rows: of x (rows, I).
    """
    on_cpu = weight.device.type == "cpu" and weight.dtype == torch.float32
    known = _arranged is not None and torch.backends.mkldnn.is_available()
    if not (on_cpu and known and weight.numel() >= WORTH_ARRANGING):
        return lambda x: F.linear(x, weight)
    arranged = _arranged(weight.detach(), rows)
    return lambda x: _linear(x, arranged, None, "none", [], "")
