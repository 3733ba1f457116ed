"""Which synthetic pairs are left out, and why."""

import pytest

from fairseq_ext.tools.back_translation.pairs import SyntheticPair, reason_to_drop


@pytest.mark.parametrize(
    "pair, target, ratio, least, reason",
    [
        (SyntheticPair("a b", -1.0, -2.0), "c d", 0, None, ""),
        (SyntheticPair("", None, None), "", 0, None, "empty"),
        (SyntheticPair("", -1.0, None), "c", 0, None, "empty"),
        (SyntheticPair("", -float("inf"), None), "c d", 0, None, "untranslated"),
        (SyntheticPair("a b c", -1.0, None), "d e", 1.5, None, ""),
        (SyntheticPair("a b c d", -1.0, None), "d e", 1.5, None, "ratio"),
        (SyntheticPair("a", -1.0, None), "d e", 1.5, None, "ratio"),
        (SyntheticPair("a", -1.0, -2.5), "d", 0, -2.5, ""),
        (SyntheticPair("a", -1.0, -2.6), "d", 0, -2.5, "round_trip"),
        (SyntheticPair("a", -1.0, float("nan")), "d", 0, -2.5, "round_trip"),
        (SyntheticPair("a", -1.0, None), "d", 0, -2.5, "round_trip"),
    ],
)
def test_why_a_pair_is_left_out(pair, target, ratio, least, reason):
    assert reason_to_drop(pair, target, ratio, least) == reason
