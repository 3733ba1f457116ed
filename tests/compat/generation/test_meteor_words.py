"""--scoring meteor with today's nltk (fairseq_ext/compat/generation/meteor_words.py)."""

import pytest


def test_meteor_of_sentences():
    """Words that are equal or have the same stem need no wordnet, which must be downloaded."""
    pytest.importorskip("nltk")
    from fairseq.scoring.meteor import MeteorScorer, MeteorScorerConfig

    scorer = MeteorScorer(MeteorScorerConfig())
    scorer.add_string("the cat sleeps here", "the cats sleep here")
    scorer.add_string("a b c d", "a b c d")
    # all words match in one chunk of four: 1 - 0.5 * (1 / 4) ** 3
    assert scorer.score() == pytest.approx(1 - 0.5 / 64)
    assert scorer.result_string() == "METEOR: 0.9922"
