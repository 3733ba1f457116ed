"""What is measured. As in fairseq_ext/tools/evaluate/scores.py a metric is a function of sums over
items, so that its tests can be used.

statistics: (lines of what was found, lines of references) -> (N, K); score: (K,) sums -> number.
source: ending of the file of what was found: hyp, predictions, or nll, `nats tokens` of references.
"""

import math

import numpy as np

from fairseq_ext.tools.evaluate import scores


def distance(hypothesis, reference):
    """Return the least number of insertions, deletions and exchanges between two sequences."""
    row = list(range(len(reference) + 1))
    for number, symbol in enumerate(hypothesis, start=1):
        diagonal, row[0] = row[0], number
        for place, reference_symbol in enumerate(reference, start=1):
            best = min(row[place] + 1, row[place - 1] + 1, diagonal + (symbol != reference_symbol))
            diagonal, row[place] = row[place], best
    return row[-1]


class Metric:
    """A ratio of two sums, in percent."""

    source, lower_is_better = "hyp", True

    def statistics(self, lines, references):
        pairs = [self.item(line, reference) for line, reference in zip(lines, references)]
        return np.array(pairs, dtype=np.float64)

    def score(self, sums):
        return float(100 * sums[0] / sums[1])


class CharacterErrors(Metric):
    name, title = "cer", "CER"

    def item(self, line, reference):
        return distance(line, reference), len(reference)


class WordErrors(Metric):
    name, title = "wer", "WER"

    def item(self, line, reference):
        return distance(line.split(), reference.split()), len(reference.split())


class Right(Metric):
    """Items that are one of the references, which tabs separate."""

    name, title, lower_is_better = "right", "right, %", False

    def item(self, line, reference):
        return line in reference.split("\t"), 1


class Perplexity(Metric):
    """Perplexity of the references by token, ends included."""

    name, title, source = "ppl", "perplexity", "nll"

    def item(self, line, reference):
        return tuple(map(float, line.split()))

    def score(self, sums):
        return math.exp(sums[0] / sums[1])


class Nats(Perplexity):
    """-log P of an item."""

    name, title = "nats", "nats per image"

    def item(self, line, reference):
        return float(line.split()[0]), 1

    def score(self, sums):
        return float(sums[0] / sums[1])


class SacreBLEU(scores.Metric):
    """bleu or chrf; tabs separate several references, as many for every item."""

    source, lower_is_better = "hyp", False

    def statistics(self, lines, references):
        streams = [list(stream) for stream in zip(*(line.split("\t") for line in references))]
        return np.array(self.metric._extract_corpus_statistics(lines, streams), dtype=np.float64)
