"""The example adaptive_span: what its criterion logs, and how its task counts words."""

from __future__ import annotations

import functools
from typing import Any

from ..imported_examples import modules_of_examples
from ..patch_registry import PatchedModule, patch


@patch(
    *modules_of_examples("adaptive_span.adaptive_span_loss"),
    because="fairseq 0.12.2: adaptive_span_loss divides by the number of words twice; it logs a "
    "nll_loss and a ppl that are far too small, 1.06 for 50 equally probable words",
)
def perplexities_are_of_the_loss(module: PatchedModule) -> None:
    """Log sums over words, as every criterion does, with means that stock then takes once."""
    stock = module.AdaptiveSpanCriterion.forward

    @functools.wraps(stock)
    def forward(self: Any, model: Any, sample: Any, reduce: bool = True) -> Any:
        loss, sample_size, log = stock(self, model, sample, reduce)
        count = log["nsentences"] if self.sentence_avg else log["ntokens"]
        for name in ("loss", "total_loss", "avg_span", "max_span", "sample_size"):
            log[name] = log[name] * count
        return loss, sample_size, log

    module.AdaptiveSpanCriterion.forward = forward


@patch(
    *modules_of_examples(
        "adaptive_span.truncated_bptt_lm_task", "truncated_bptt.truncated_bptt_lm_task"
    ),
    because="fairseq 0.12.2: truncated_bptt_lm counts the last word of each block and the padding "
    "as predicted; losses are too small by the share of them, 0.2% for blocks of 512 words",
)
def predicted_words_are_counted(module: PatchedModule) -> None:
    """Count the words of a block that are predicted, in `ntokens`."""
    task = module.TruncatedBPTTLMTask
    stock = task._collate_fn

    @functools.wraps(stock)
    def _collate_fn(self: Any, items: Any) -> dict[str, Any]:
        batch: dict[str, Any] = stock(self, items)
        predicted = batch["target"].ne(self.target_dictionary.pad())
        batch["ntokens"] = max(1, int(predicted.sum()))  # a block of one word predicts none
        return batch

    task._collate_fn = _collate_fn
