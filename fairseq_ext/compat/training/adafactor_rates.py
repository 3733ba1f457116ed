"""The learning rates of --optimizer adafactor."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.optim.adafactor import Adafactor


@patch(
    "fairseq.optim.adafactor",
    because="fairseq 0.12.2: with --scale-parameter a parameter's rate is scaled by its own size "
    "and by those of all parameters before it: from the fourth on nothing is learnt",
)
def rates_are_scaled_once(module: PatchedModule) -> None:
    """Begin with the scheduled rate at each parameter.

    Stock writes the rate of a parameter into its group, from which the next one reads it.
    """
    optimizer = module.Adafactor
    stock = optimizer.step

    @functools.wraps(stock)
    def step(self: Adafactor, closure: Callable[[], Any] | None = None) -> Any:
        groups = self.param_groups
        # shallow copies: the rate of the scheduler stays in the groups themselves
        self.param_groups = [
            {**group, "params": [parameter]} for group in groups for parameter in group["params"]
        ]
        try:
            return stock(self, closure)
        finally:
            self.param_groups = groups

    optimizer.step = step
