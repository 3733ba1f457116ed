"""--ignore-prefix-size, which leaves the first words of a target out of the loss."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
    from fairseq.logging.meters import MetersDict
    from fairseq.models import BaseFairseqModel
    from torch import Tensor

# criteria with a forward of their own
DERIVED = {
    "label_smoothed_cross_entropy_with_ctc": "LabelSmoothedCrossEntropyWithCtcCriterion",
    "label_smoothed_cross_entropy_latency_augmented": (
        "LatencyAugmentedLabelSmoothedCrossEntropyCriterion"
    ),
    "speech_to_speech_criterion": "SpeechToUnitMultitaskTaskCriterion",
}


@patch(
    "fairseq.criterions.label_smoothed_cross_entropy",
    because="fairseq 0.12.2: --ignore-prefix-size divides the loss by the number of all words, "
    "those that it ignores too: loss and perplexity are too low, most of all for short sentences",
)
def ignored_words_are_not_counted(module: PatchedModule) -> None:
    """Count the words of which there is a loss."""
    criterion = module.LabelSmoothedCrossEntropyCriterion
    reduce_stock = criterion.reduce_metrics.__func__

    def reduce_metrics(cls: type, logging_outputs: list[dict[str, Any]]) -> None:
        if sum(log.get("ntokens", 0) for log in logging_outputs):
            reduce_stock(cls, logging_outputs)
            return
        # stock divides 0 by 0; a mean over batches takes in what has no weight as nothing
        weight = sum(log.get("sample_size", 0) for log in logging_outputs)
        module.metrics.log_scalar("loss", 0.0, weight, round=3)
        module.metrics.log_scalar("nll_loss", 0.0, 0, round=3)
        module.metrics.log_derived("ppl", _perplexity)

    criterion.forward = _counting_scored_words(criterion.forward)
    criterion.reduce_metrics = classmethod(reduce_metrics)


@patch(
    *(f"fairseq.criterions.{name}" for name in DERIVED),
    because="fairseq 0.12.2: --ignore-prefix-size of label_smoothed_cross_entropy_with_ctc, "
    "speech_to_unit and latency_augmented_label_smoothed_cross_entropy divides the loss by the "
    "number of all words",
)
def ignored_words_of_speech_are_not_counted(module: PatchedModule) -> None:
    """Count the words of which there is a loss."""
    criterion = getattr(module, DERIVED[module.__name__.rpartition(".")[2]])
    criterion.forward = _counting_scored_words(criterion.forward)


def _counting_scored_words(stock: Any) -> Any:
    """Return a forward that is told the number of words that are scored."""

    @functools.wraps(stock)
    def forward(
        self: LabelSmoothedCrossEntropyCriterion,
        model: BaseFairseqModel,
        sample: dict[str, Any],
        reduce: bool = True,
    ) -> Any:
        # a criterion of a plugin may do without the constructor, and compute its own loss
        if getattr(self, "ignore_prefix_size", 0) > 0:
            sample = {**sample, "ntokens": scored_words(self, sample)}
        return stock(self, model, sample, reduce)

    return forward


def scored_words(
    criterion: LabelSmoothedCrossEntropyCriterion, sample: dict[str, Any]
) -> int | Tensor:
    """Return the number of words of a batch behind the prefixes that are ignored."""
    if criterion.ignore_prefix_size <= 0:
        words: int = sample["ntokens"]
        return words
    rest = sample["target"][:, criterion.ignore_prefix_size :]
    # none where all targets are as short as what is ignored
    return rest.ne(criterion.padding_idx).sum()


def _perplexity(meters: MetersDict) -> float:
    """Return the perplexity of the mean over batches, as fairseq's own function does."""
    from fairseq import utils

    return utils.get_perplexity(meters["nll_loss"].avg)
