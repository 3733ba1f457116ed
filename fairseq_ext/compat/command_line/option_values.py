"""The values of options as the checks read them."""

from __future__ import annotations

import ast

from .chosen_classes import Values, chosen_classes, is_stock


def number(values: Values, name: str) -> int | float | None:
    """Return the value of an option if it is a number, otherwise None."""
    value = values.get(name)
    return value if isinstance(value, (int, float)) else None


def is_true(values: Values, name: str) -> bool:
    """True if a switch is on; fairseq's older tasks read some as text."""
    return str(values.get(name)) in ("True", "true", "1")


def literal(text: str) -> object | None:
    """Return the value of a Python literal; None for any other text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def is_stock_alone(values: Values) -> bool:
    """True if task, model and the like are all fairseq's or this package's."""
    return all(map(is_stock, chosen_classes(values)))
