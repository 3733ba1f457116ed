"""Sums over the logging outputs of a criterion, one output for each batch or worker."""

from typing import Any, Dict, Sequence


def logged_sum(logging_outputs: Sequence[Dict[str, Any]], name: str) -> Any:
    """Return the sum of a value, a number or a tensor; an output without it counts as 0."""
    return sum(log.get(name, 0) for log in logging_outputs)
