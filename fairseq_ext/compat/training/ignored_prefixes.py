"""--ignore-prefix-size, which leaves the first words of a target out of the loss."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
    from fairseq.models import BaseFairseqModel


@patch(
    "fairseq.criterions.label_smoothed_cross_entropy",
    because="fairseq 0.12.2: --ignore-prefix-size divides the loss by the number of all words, "
    "those that it ignores too: loss and perplexity are too low, most of all for short sentences",
)
def ignored_words_are_not_counted(module: PatchedModule) -> None:
    """Count the words of which there is a loss."""
    criterion = module.LabelSmoothedCrossEntropyCriterion
    stock = criterion.forward

    @functools.wraps(stock)
    def forward(
        self: LabelSmoothedCrossEntropyCriterion,
        model: BaseFairseqModel,
        sample: dict[str, Any],
        reduce: bool = True,
    ) -> Any:
        if self.ignore_prefix_size > 0:
            rest = sample["target"][:, self.ignore_prefix_size :]
            # 1: of a batch without any the loss is 0, not 0 / 0
            words = rest.ne(self.padding_idx).sum().clamp(min=1)
            sample = {**sample, "ntokens": words}
        return stock(self, model, sample, reduce)

    criterion.forward = forward
