"""The distribution of several models together."""

import math
from typing import Sequence

import torch
from torch import Tensor


def mean_log_probs(log_probs: Sequence[Tensor]) -> Tensor:
    """Return the logarithm of the mean probability, of log P by each model, all of one shape.

    The mean is taken in logarithms: a probability below 1e-45 would be zero in single precision.
    """
    return torch.stack(list(log_probs)).logsumexp(dim=0) - math.log(len(log_probs))
