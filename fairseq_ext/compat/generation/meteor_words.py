"""METEOR with today's nltk, which takes words in the place of sentences."""

from __future__ import annotations

import functools
from typing import Any

from ..patch_registry import PatchedModule, installed_version, patch


@patch(
    "fairseq.scoring.meteor",
    because="nltk 3.6.6 takes the words of a sentence, not the sentence: --scoring meteor ends in "
    '"expects pre-tokenized hypothesis"',
)
def meteor_is_of_words(module: PatchedModule) -> None:
    """Cut sentences at blanks, as nltk did."""
    scorer = module.MeteorScorer
    stock = scorer.score

    @functools.wraps(stock)
    def score(self: Any, order: int = 4) -> float:
        # not a condition of the patch: nltk is imported by those alone who ask for METEOR
        if installed_version("nltk") < (3, 7):
            return float(stock(self, order))
        of_sentence = self.nltk.translate.meteor_score.single_meteor_score
        pairs = zip(self.ref, self.pred)
        self.scores = [of_sentence(ref.split(), pred.split()) for ref, pred in pairs]
        return float(module.np.mean(self.scores))

    scorer.score = score
