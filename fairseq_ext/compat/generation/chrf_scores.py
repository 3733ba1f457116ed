"""The number of --scoring chrf, for programs."""

from __future__ import annotations

from typing import Any

from ..patch_registry import PatchedModule, patch


@patch(
    "fairseq.scoring.chrf",
    because="fairseq 0.12.2: score() of the scorer of chrF looks for a number in a text and ends "
    "in an AttributeError",
)
def chrf_is_a_number(module: PatchedModule) -> None:
    """Return chrF from score(), as the other scorers do."""

    def score(self: Any, order: int = 4) -> float:
        if order != 4:  # as in result_string
            raise ValueError(f"order {order} is not allowed with chrF; allowed: 4, the default")
        return float(self.sacrebleu.corpus_chrf(self.pred, [self.ref]).score)

    module.ChrFScorer.score = score
