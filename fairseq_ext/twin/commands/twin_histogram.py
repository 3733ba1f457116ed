"""Fig. 2b of Serdyuk et al.: histograms of L_t for rare words against frequent ones.

"The cost is averaged over characters of a word", and "first 1500" words, the rare ones, stand
against all others: here the N words of the lowest frequency against the rest. Every occurrence of a
word counts.
"""

import math
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from ...tools.curves.figures import legends_below, new_figure

BINS = 30
RARE = 1500  # the paper's


class Histogram(NamedTuple):
    """edges: (BINS + 1,). rare, frequent: L_t of each occurrence of such a word."""

    edges: List[float]
    rare: List[float]
    frequent: List[float]

    def shares(self) -> List[Tuple[float, float, float, float]]:
        """Return (from, to, share of rare words' occurrences, of frequent words') of each bin."""
        counted = [self._counts(values) for values in (self.rare, self.frequent)]
        rows = zip(self.edges, self.edges[1:], *counted)
        return [
            (low, high, rare / max(len(self.rare), 1), frequent / max(len(self.frequent), 1))
            for low, high, rare, frequent in rows
        ]

    def _counts(self, values: List[float]) -> List[int]:
        """Return how many values are in each bin."""
        counts, width = [0] * BINS, (self.edges[-1] - self.edges[0]) / BINS
        for value in values:
            # all values the same: a single bin
            place = int((value - self.edges[0]) / width) if width else 0
            # the greatest value lies on the last edge
            counts[min(place, BINS - 1)] += 1
        return counts

    def summary(self) -> List[Tuple[str, float]]:
        """Return names and numbers: means and standard deviations of both groups."""
        rows = []
        for name, values in (("rare", self.rare), ("frequent", self.frequent)):
            mean = sum(values) / len(values) if values else math.nan
            squares = sum((value - mean) ** 2 for value in values)
            rows.append((f"mean L_t of {name} words", mean))
            deviation = math.sqrt(squares / len(values)) if values else math.nan
            rows.append((f"standard deviation of L_t of {name} words", deviation))
        return rows


def histogram(values: Dict[str, List[float]], by_frequency: Sequence[str], rare: int) -> Histogram:
    """Return the histogram of L_t of all occurrences of words.

    Args:
        values: {word: L_t of each of its occurrences}.
        by_frequency: the words, most frequent first.
        rare: how many words count as rare, of the least frequent ones; half of them at most.
    """
    # never more rare words than frequent ones
    count = min(rare, len(by_frequency) // 2)
    border = len(by_frequency) - count
    groups = [
        [value for word in words for value in values[word]]
        for words in (by_frequency[border:], by_frequency[:border])
    ]
    together = [value for group in groups for value in group]
    low, high = min(together), max(together)
    # common to both groups, so that their bars can be compared
    edges = [low + (high - low) * place / BINS for place in range(BINS + 1)]
    return Histogram(edges, *groups)


def draw(bins: Histogram) -> Any:
    """Return the figure of both histograms over the same bins."""
    figure, (panel,) = new_figure(1, 1)
    rows = bins.shares()
    width = bins.edges[1] - bins.edges[0]
    for name, place in (("rare", 2), ("frequent", 3)):
        panel.bar(
            [row[0] for row in rows],
            [row[place] for row in rows],
            width=width,
            align="edge",
            alpha=0.5,
            label=f"{name} words",
        )
    panel.set_xlabel("L_t, mean over the word")
    panel.set_ylabel("share of occurrences")
    legends_below(figure, [panel])
    return figure
