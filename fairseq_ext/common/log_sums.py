"""Sums over the logging outputs of a criterion, one output for each batch or worker."""

from typing import Any, Dict, Iterable, Sequence

from fairseq import metrics


def logged_sum(logging_outputs: Sequence[Dict[str, Any]], name: str) -> Any:
    """Return the sum of a value, a number or a tensor; an output without it counts as 0."""
    return sum(log.get(name, 0) for log in logging_outputs)


def log_sums(
    logging_outputs: Sequence[Dict[str, Any]], names: Iterable[str], prefix: str = ""
) -> Dict[str, float]:
    """Log the sums of values under ``prefix`` + name and return them as {name: sum}.

    Scores are derived from them at the end. With "_" at the beginning fairseq prints nothing.
    """
    sums = {name: float(logged_sum(logging_outputs, name)) for name in names}
    for name, total in sums.items():
        metrics.log_scalar(prefix + name, total)
    return sums
