"""A synthetic pair, and why it may be left out."""

import math
from typing import NamedTuple, Optional


class SyntheticPair(NamedTuple):
    """What a line has become.

    source: its translation, empty for a line without words. score: mean log2 P of its tokens, -inf
    where the model could not translate the line. round_trip: mean log2 P of the tokens of the line,
    translated back from it; None if not asked.
    """

    source: str
    score: Optional[float]
    round_trip: Optional[float]


def words(text: str) -> int:
    """Return the number of words of a line."""
    return len(text.split())


def reason_to_drop(
    pair: SyntheticPair, target: str, max_ratio: float, min_round_trip: Optional[float]
) -> str:
    """Return why a pair is left out, "" for one that is kept.

    Args:
        pair: of the line.
        target: the line.
        max_ratio: between the words of both sides; 0 = any.
        min_round_trip: the least round-trip score; None = any.
    """
    counts = words(pair.source), words(target)
    if pair.score == -math.inf:
        return "untranslated"
    if not min(counts):
        return "empty"
    if max_ratio and max(counts) > max_ratio * min(counts):
        return "ratio"
    if min_round_trip is not None:
        # written so that NaN is left out as well
        score = pair.round_trip
        if score is None or not score >= min_round_trip:
            return "round_trip"
    return ""
