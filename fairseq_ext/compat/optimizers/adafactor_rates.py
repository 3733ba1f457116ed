"""The learning rates of --optimizer adafactor."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any, Callable

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.optim.adafactor import Adafactor, FairseqAdafactor

logger = logging.getLogger(__name__)


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


@patch(
    "fairseq.optim.adafactor",
    because="fairseq 0.12.2: --optimizer adafactor --relative-step ends in 'Cannot combine manual "
    "lr and relative_step options', with and without --lr",
)
def relative_steps_need_no_rate(module: PatchedModule) -> None:
    """Let --relative-step set the rates, in place of --lr and --lr-scheduler."""
    optimizer = module.FairseqAdafactor
    build, stock = optimizer.__init__, optimizer.optimizer_config

    @functools.wraps(build)
    def __init__(self: FairseqAdafactor, args: Any, params: Any) -> None:
        if args.relative_step:
            logger.warning(
                "--relative-step sets the learning rate: --lr and --lr-scheduler, of which the log "
                "shows lr, have no effect"
            )
        build(self, args, params)

    def optimizer_config(self: FairseqAdafactor) -> dict[str, Any]:
        """Return the settings of the optimizer; its rate is None where steps are relative."""
        settings: dict[str, Any] = stock.fget(self)
        return {**settings, "lr": None} if settings["relative_step"] else settings

    optimizer.__init__, optimizer.optimizer_config = __init__, property(optimizer_config)
