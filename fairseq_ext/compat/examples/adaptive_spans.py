"""The example adaptive_span: what its criterion logs."""

from __future__ import annotations

import functools
from typing import Any

from ..patch_registry import PatchedModule, patch
from .user_dirs import modules_of_example


@patch(
    *modules_of_example("adaptive_span.adaptive_span_loss"),
    because="fairseq 0.12.2: adaptive_span_loss divides by the number of words twice; it logs a "
    "nll_loss and a ppl that are far too small, 1.06 for 50 equally probable words",
)
def perplexities_are_of_the_loss(module: PatchedModule) -> None:
    """Log `nll_loss` and `ppl` of the mean loss per word."""
    stock = module.AdaptiveSpanCriterion.reduce_metrics

    @functools.wraps(stock)
    def reduce_metrics(logging_outputs: list[dict[str, Any]]) -> None:
        # `loss` is a mean already, so one batch counts as one word: stock then takes ppl of it
        stock([{**log, "ntokens": log.get("sample_size", 0)} for log in logging_outputs])

    module.AdaptiveSpanCriterion.reduce_metrics = staticmethod(reduce_metrics)
