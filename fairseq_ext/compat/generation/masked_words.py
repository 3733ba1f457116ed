"""Mask-predict, the search of cmlm_transformer: what is masked, and until when."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Sequence

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.iterative_refinement_generator import IterativeRefinementGenerator
    from fairseq.models.nat import FairseqNATModel
    from torch import Tensor


@patch(
    "fairseq.iterative_refinement_generator",
    because="fairseq 0.12.2: without --iter-decode-force-max-iter the search of cmlm_transformer "
    "ends where two steps agree, although each step but the last masks words again: <unk> stands "
    "for them in the translation",
)
def masked_words_are_predicted(module: PatchedModule) -> None:
    """Refine with mask-predict until its last step, which predicts all words."""
    generator = module.IterativeRefinementGenerator
    stock = generator.generate

    @functools.wraps(stock)
    def generate(
        self: IterativeRefinementGenerator, models: Sequence[FairseqNATModel], *more: Any, **kw: Any
    ) -> Any:
        classes = type(models[0]).__mro__
        if not any(entry.__name__ == "CMLMNATransformerModel" for entry in classes):
            return stock(self, models, *more, **kw)
        adaptive, self.adaptive = self.adaptive, False
        try:
            return stock(self, models, *more, **kw)
        finally:
            self.adaptive = adaptive

    generator.generate = generate


@patch(
    "fairseq.models.nat.cmlm_transformer",
    because="fairseq 0.12.2: mask-predict ranks <s>, </s> and padding with the score of a certain "
    "word, so that it masks them where words are certain, and the padding becomes words",
)
def only_words_are_masked(module: PatchedModule) -> None:
    """Rank what is no word behind all words."""
    stock = module._skeptical_unmasking

    def _skeptical_unmasking(output_scores: Tensor, output_masks: Tensor, p: float) -> Tensor:
        """Return where to mask, (B, T) bool, of log-probabilities (B, T) and of what is no padding.

        p: the part of the words between <s> and </s> to mask.
        """
        scores, is_token = output_scores, output_masks
        # the last token is where no other comes behind it
        is_behind = is_token.flip(1).cumsum(1).flip(1) > 1
        is_word = is_token & is_behind
        is_word[:, 0] = False
        return stock(scores.masked_fill(~is_word, float("inf")), is_token, p)

    module._skeptical_unmasking = _skeptical_unmasking
