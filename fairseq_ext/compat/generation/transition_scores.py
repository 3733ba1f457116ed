"""The scores of the words that nacrf_transformer writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.modules import DynamicCRF
    from torch import Tensor


@patch(
    "fairseq.modules.dynamic_crf_layer",
    because="fairseq 0.12.2: the scores of words are those of other paths, which end in another "
    "word; their sum alone is right",
)
def scores_are_of_the_best_path(module: PatchedModule) -> None:
    """Compute the score of each word from the path."""
    crf = module.DynamicCRF
    stock = crf._viterbi_decode

    def _viterbi_decode(
        self: DynamicCRF, emissions: Tensor, masks: Tensor | None = None, beam: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return scores and words, (B, T) each, of (B, T, V) and, False for padding, (B, T)."""
        _, words = stock(self, emissions, masks, beam)
        scores = emissions.gather(2, words.unsqueeze(2)).squeeze(2)
        transitions = (self.E1(words[:, :-1]) * self.E2(words[:, 1:])).sum(2)
        scores[:, 1:] += transitions
        return (scores if masks is None else scores.masked_fill(~masks, 0)), words

    crf._viterbi_decode = _viterbi_decode
