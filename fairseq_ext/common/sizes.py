"""Ranges of sizes and rates. Every error names the option, its value and what is allowed."""

from dataclasses import fields
from typing import Any, Sequence

from ..compat.user_errors import option_of


def check_rate(option: str, value: float) -> None:
    """Raise ValueError unless 0 <= value < 1."""
    if not 0.0 <= value < 1.0:
        raise ValueError(f"{option} {value}: must be in [0, 1)")


def check_sizes(size: Any, may_be_zero: Sequence[str] = (), **options: str) -> None:
    """Raise ValueError for a field out of range.

    Args:
        size: a dataclass. What is annotated ``int`` must be at least 1, what is annotated
            ``float`` is a rate in [0, 1); other fields are not looked at.
        may_be_zero: names of sizes that may also be 0.
        options: {field: its option} where that is not --FIELD with dashes.
    """
    for field in fields(size):
        option = options.get(field.name, option_of(field.name))
        value = getattr(size, field.name)
        if field.type is float:
            check_rate(option, value)
        elif field.type is int:
            least = 0 if field.name in may_be_zero else 1
            if value < least:
                raise ValueError(f"{option} {value}: must be at least {least}")
