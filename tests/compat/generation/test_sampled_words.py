"""--sampling-topk: at most as many words as there are."""

import pytest
from common.words import numbered_words
from fairseq.search import Sampling


def test_more_words_than_there_are_are_refused():
    with pytest.raises(ValueError, match="^--sampling-topk 10: .* has 9 symbols; allowed: at most"):
        Sampling(numbered_words(9), 10)
    assert Sampling(numbered_words(9), 9).sampling_topk == 9
    assert Sampling(numbered_words(9), -1, 0.5).sampling_topp == 0.5
