"""Dropout with cheap random numbers on CPUs.

There torch draws a number of double precision for every value, a good part of the time of an update
of a small Transformer. Sixteen random bits are enough.
"""

import logging
from functools import lru_cache
from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F

LEVELS = 1 << 16
logger = logging.getLogger(__name__)


class RetainsDropout:
    """Mixin for modules with dropout: fairseq's --retain-dropout keeps it on at inference.

    --retain-dropout-modules takes names of classes, as of fairseq's own models.
    """

    training: bool
    dropout: float
    apply_during_inference = False

    @property
    def module_name(self) -> str:
        """Return the module's name for --retain-dropout-modules, as in ``FairseqDropout``."""
        return type(self).__name__

    @property
    def is_dropping(self) -> bool:
        """True if the module drops values now."""
        return self.training or self.apply_during_inference

    def drop(self, values: Tensor, rate: Optional[float] = None) -> Tensor:
        """Return values of any shape after dropout at a rate, by default that of the module."""
        return dropout(values, self.dropout if rate is None else rate, self.is_dropping)

    def make_generation_fast_(
        self,
        name: str = "",
        retain_dropout: bool = False,
        retain_dropout_modules: Optional[List[str]] = None,
        **_unused: Any,
    ) -> None:
        """Prepare for inference; fairseq calls this for every module of a model."""
        if retain_dropout and self.module_name in (retain_dropout_modules or [self.module_name]):
            logger.info(f"Enabling dropout during inference for module: {name}")
            self.apply_during_inference = True


def dropout(values: Tensor, rate: float, training: bool = True) -> Tensor:
    """Drop values as torch.nn.functional.dropout does, by torch's seeded random numbers.

    On CPUs ``rate`` is rounded, see ``dropout_mask``, and the mean stays what it is.
    """
    # GPUs draw numbers fast enough; rates of 0 and 1 need none
    if not training or not 0 < rate < 1 - 1 / LEVELS or values.device.type != "cpu":
        return F.dropout(values, rate, training)
    return values * dropout_mask(values, rate)


def dropout_mask(like: Tensor, rate: float) -> Tensor:
    """Return 0 with probability ``rate`` and 1 / (1 - rate) otherwise, shaped as ``like``.

    The rate is rounded so that it is a multiple of 2^-16 and the factor a number of the type of
    ``like``: in bfloat16, 0.1 becomes 0.0986 and the factor 1.1094.
    """
    dropped, factor = _rounded(rate, like.dtype)
    count = like.numel()
    # four lanes of 16 bits are cut from each number of 64
    bits = torch.empty((count + 3) // 4, dtype=torch.int64, device=like.device)
    bits.random_(-(2**63), None)
    lanes = bits.view(torch.int16)[:count].view(like.shape)  # uniform in [-2^15, 2^15)
    # a share of dropped / 2^16 of the lanes lies below the limit; compared in place, sixteen bits
    # stay sixteen bits, and neither step goes by way of bools, which takes torch twice as long
    ones = lanes.ge_(dropped - LEVELS // 2).to(like.dtype)
    return ones.mul_(factor)


@lru_cache(maxsize=None)
def _rounded(rate: float, dtype: torch.dtype) -> Tuple[int, float]:
    """Return how many of 2^16 values are dropped, and by what the others are multiplied."""
    exact = LEVELS / (LEVELS - round(rate * LEVELS))
    factor = float(torch.tensor(exact, dtype=dtype, device="cpu"))
    return LEVELS - round(LEVELS / factor), factor
