"""Checks of the options of --lr-scheduler against each other, and of --lr.

fairseq ends in AssertionError, "math domain error" or a division by zero for what is refused here.
"""

from __future__ import annotations

import math
from typing import Any, Callable

from ..user_errors import OptionError, option_of
from .chosen_classes import Values
from .option_values import literal, number
from .training_checks import is_training


def _first_rate(values: Values) -> float | None:
    """Return the first rate of --lr; None where it is no number yet, as a reference of hydra."""
    rates = values.get("lr")
    first = rates if rates is None or isinstance(rates, (str, int, float)) else next(iter(rates))
    return number({"lr": first}, "lr")


def _cosine(values: Values) -> None:
    """Raise OptionError for a lowest rate that is the highest, and for periods without a length."""
    _lowest_is_below(values)
    period, updates = number(values, "lr_period_updates"), number(values, "max_update")
    if (period or 0) <= 0 and (updates or 0) <= 0:
        raise OptionError(
            "--lr-scheduler cosine: nothing says how long a period is; allowed: with "
            "--lr-period-updates, or with --max-update, which ends the only one"
        )


def _lowest_is_below(values: Values) -> None:
    """Raise OptionError for a --min-lr of at least --lr, from which the rate falls."""
    rate, lowest = _first_rate(values), number(values, "min_lr")
    if rate is not None and lowest is not None and lowest >= rate:
        raise OptionError(f"--min-lr {lowest:g} with --lr {rate:g}: allowed: less than --lr")


def _step(values: Values) -> None:
    """Raise OptionError for rates that would rise."""
    _lowest_is_below(values)
    factor = number(values, "lr_decay")
    if factor is not None and factor > 1:
        raise OptionError(
            f"{option_of('lr_decay')} {factor:g} with --lr-scheduler step, whose rate falls; "
            "allowed: at most 1"
        )


def _triangular(values: Values) -> None:
    """Raise OptionError for a highest rate that is the lowest, and for periods without a middle."""
    rate, highest = _first_rate(values), number(values, "max_lr")
    if rate is not None and highest is not None and highest <= rate:
        raise OptionError(
            f"--max-lr {highest:g} with --lr {rate:g}, the lowest rate of --lr-scheduler "
            "triangular: allowed: more than --lr"
        )
    period = number(values, "lr_period_updates")
    if period is not None and period < 2:
        raise OptionError(
            f"--lr-period-updates {period:g} with --lr-scheduler triangular, whose rate rises and "
            "falls in a period; allowed: at least 2"
        )


def _tri_stage(values: Values) -> None:
    """Raise OptionError for stages without updates, and for a last rate that is none."""
    scale = number(values, "final_lr_scale")
    if scale is not None and scale <= 0:
        raise OptionError(
            f"--final-lr-scale {scale:g}: the rate is multiplied by one factor in each update; "
            "allowed: more than 0"
        )
    ratio = values.get("phase_ratio")
    parts: Any = literal(ratio) if isinstance(ratio, str) else ratio
    if parts is None:
        names = ("warmup_steps", "hold_steps", "decay_steps")
        if not any(number(values, name) for name in names):
            raise OptionError(
                "--lr-scheduler tri_stage: its stages have no updates; allowed: with "
                "--warmup-steps, --hold-steps or --decay-steps, or with --phase-ratio"
            )
        return
    shown = f"--phase-ratio {ratio if isinstance(ratio, str) else tuple(parts)}"
    if (number(values, "max_update") or 0) <= 0:
        raise OptionError(f"{shown} without --max-update, of which it gives the parts")
    if math.fsum(parts) != 1:
        raise OptionError(f"{shown}: allowed: three numbers whose sum is 1")


def _polynomial_decay(values: Values) -> None:
    """Raise OptionError for a decay that does not end."""
    total = str(values.get("total_num_update") or "")  # a text, or a reference to --max-update
    if (not total or total.startswith("${")) and (number(values, "max_update") or 0) <= 0:
        raise OptionError(
            "--total-num-update is missing with --lr-scheduler polynomial_decay: nothing says when "
            "the decay ends; allowed: with it, or with --max-update"
        )


# {schedule: its check}
CHECKS: dict[str, Callable[[Values], None]] = {
    "cosine": _cosine,
    "step": _step,
    "triangular": _triangular,
    "tri_stage": _tri_stage,
    "polynomial_decay": _polynomial_decay,
}


def rates_can_be_made(values: Values) -> None:
    """Raise OptionError, in fairseq-train, where the chosen schedule has no rates to give."""
    compare = CHECKS.get(str(values.get("lr_scheduler")))
    if compare is not None and is_training(values):
        compare(values)
