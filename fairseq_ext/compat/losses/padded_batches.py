"""Batches of language models that padding fills up to a fixed number of lines."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.models import BaseFairseqModel

# {module of fairseq: its criterion}
CRITERIA = {
    "fairseq.criterions.cross_entropy": "CrossEntropyCriterion",
    "fairseq.criterions.adaptive_loss": "AdaptiveLoss",
    "fairseq.criterions.label_smoothed_cross_entropy": "LabelSmoothedCrossEntropyCriterion",
}


@patch(
    *CRITERIA,
    because="fairseq 0.12.2: --pad-to-fixed-bsz fills a batch up with lines of padding, which "
    "count as sentences: with --sentence-avg gradients and losses are too small",
)
def lines_of_padding_are_no_sentences(module: PatchedModule) -> None:
    """Take the number of sentences from the sample, not from the rows of its target."""
    criterion = getattr(module, CRITERIA[module.__name__])
    stock = criterion.forward

    @functools.wraps(stock)
    def forward(
        self: Any, model: BaseFairseqModel, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Return (loss, sample size, what is logged)."""
        loss, size, log = stock(self, model, sample, reduce=reduce)
        sentences = sample.get("nsentences", log["nsentences"])
        # batches of a plugin may have several targets of a sentence
        options = getattr(self.task, "args", None)
        if getattr(options, "pad_to_fixed_bsz", False) and sentences < log["nsentences"]:
            log["nsentences"] = sentences
            if self.sentence_avg:
                size = log["sample_size"] = sentences
        return loss, size, log

    criterion.forward = forward
