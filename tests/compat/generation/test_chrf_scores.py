"""The scorer of --scoring chrf, in programs."""

import pytest
import sacrebleu
from fairseq.scoring.chrf import ChrFScorer


def test_chrf_is_a_number():
    scorer = ChrFScorer(None)
    scorer.add_string("the cat sleeps here", "the cats sleep here")
    expected = sacrebleu.corpus_chrf(["the cats sleep here"], [["the cat sleeps here"]])
    assert scorer.score() == expected.score and 0 < expected.score < 100
    assert scorer.result_string() == expected.format()
    with pytest.raises(ValueError, match="order 3 is not allowed with chrF; allowed: 4"):
        scorer.score(3)
