"""Rank correlation."""

import math
from typing import List, Sequence


def ranks(values: Sequence[float]) -> List[float]:
    """Return the places in ascending order, from 1; equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    places, start = [0.0] * len(values), 0
    while start < len(order):
        end = start + 1
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for index in order[start:end]:
            places[index] = (start + 1 + end) / 2
        start = end
    return places


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the rank correlation; NaN where one of the sequences does not vary."""
    middle = (len(first) + 1) / 2
    x, y = ([rank - middle for rank in ranks(values)] for values in (first, second))
    scale = math.sqrt(sum(v * v for v in x) * sum(v * v for v in y))
    return sum(a * b for a, b in zip(x, y)) / scale if scale else math.nan
