"""Lists of fairseq-generate with the terms of Eq. 7; test_reranker_commands.py makes them."""

import math

from fairseq_ext.dual.commands.nbest_lists import without_ruled_out


def test_candidates_that_the_search_rules_out():
    scores = [{"score": score} for score in (-2.0, -math.inf, -1.0)]
    assert without_ruled_out(scores) == [scores[0], scores[2]]
    assert without_ruled_out(scores[1:2]) == scores[1:2]
