"""Dropout with cheap random numbers on CPUs.

There torch draws a number of double precision for every value, a good part of the time of an update
of a small Transformer. Sixteen random bits are enough.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

LEVELS = 1 << 16


def dropout(values: Tensor, rate: float, training: bool = True) -> Tensor:
    """As torch.nn.functional.dropout, by torch's random numbers, which torch.manual_seed starts.

    On CPUs ``rate`` is rounded to a multiple of 2^-16, and the mean stays what it is.
    """
    if not training or not 0 < rate < 1 - 1 / LEVELS or values.device.type != "cpu":
        return F.dropout(values, rate, training)
    return values * kept(values, rate)


def kept(like: Tensor, rate: float) -> Tensor:
    """0 with the probability ``rate``, otherwise 1 / (1 - rate): shape and type of ``like``."""
    dropped = round(rate * LEVELS)
    count = like.numel()
    bits = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    lanes = bits.view(torch.int16)[:count].view(like.shape)  # uniform in [-2^15, 2^15)
    ones = lanes.ge(dropped - LEVELS // 2).to(like.dtype)
    return ones.mul_(LEVELS / (LEVELS - dropped))
