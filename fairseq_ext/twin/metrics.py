"""Scores of texts while a model trains: error rates of transcripts, BLEU and CIDEr-D of captions.

Every score is made of sums over sentences, which batches and workers add up; one division follows.

CIDEr-D (Vedantam, Zitnick and Parikh, CVPR 2015, Eq. 4), of a caption c and the references s_1 ..
s_m of its image, for n = 1 .. 4::

    g(w) = count of the n-gram w * (log I - log max(1, images with w in a reference))
    sim_n(c, s) = exp(-(|c| - |s|)^2 / (2 * 6^2))
                  * sum_w min(g_c(w), g_s(w)) g_s(w) / (||g_c|| ||g_s||)
    CIDEr-D = 10 * mean over n and over references of sim_n

I is the number of images. The corpus score is the mean over images; 100 times that is what papers
print, and what is returned here.
"""

import math
from collections import Counter
from functools import partial
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
import sacrebleu
from fairseq import metrics

from ..common import corpus_bleu
from ..common.log_sums import log_sums
from ..compat.corpus_bleu import bleu_of_meters

ORDERS = range(1, 5)
SIGMA = 6.0
Sums = Dict[str, Any]


def edit_distance(hypothesis: Sequence[str], reference: Sequence[str]) -> int:
    """Return the least number of insertions, deletions and substitutions from one to the other."""
    # numbers, so that a row of the table is computed at once
    symbols = {symbol: number for number, symbol in enumerate({*hypothesis, *reference})}
    columns = np.array([symbols[symbol] for symbol in reference], dtype=np.int64)
    places = np.arange(len(columns) + 1)
    row = places.copy()  # of Levenshtein's table, one for each symbol of the hypothesis
    for number, symbol in enumerate(hypothesis, start=1):
        # a deletion, or a substitution unless both symbols are the same
        row = np.concatenate(
            [[number], np.minimum(row[1:] + 1, row[:-1] + (columns != symbols[symbol]))]
        )
        row = np.minimum.accumulate(row - places) + places  # insertions along the row
    return int(row[-1])


def error_sums(hypotheses: List[str], references: List[str]) -> Sums:
    """Return errors and lengths of transcripts, in characters and in words."""
    sums: Dict[str, int] = Counter()
    for line, reference in zip(hypotheses, references):
        sums["_cer_errors"] += edit_distance(line, reference)
        sums["_cer_length"] += len(reference)
        sums["_wer_errors"] += edit_distance(line.split(), reference.split())
        sums["_wer_length"] += len(reference.split())
    return dict(sums)


def log_error_rates(logs: List[Sums]) -> None:
    """Log ``cer`` and ``wer`` in percent; without a reference that has words there are none."""
    for name in ("cer", "wer"):
        if log_sums(logs, (f"_{name}_errors", f"_{name}_length"))[f"_{name}_length"]:
            metrics.log_derived(name, partial(_error_rate, name))


def _error_rate(name: str, meters: Dict[str, Any]) -> float:
    """Return an error rate in percent, of all that fairseq has added up."""
    errors, length = (float(meters[f"_{name}_{kind}"].sum) for kind in ("errors", "length"))
    return round(100.0 * errors / length, 2)


def bleu_sums(hypotheses: List[str], references: List[List[str]]) -> Sums:
    """Return what corpus BLEU of tokenised captions is made of; each has one reference or more."""
    if not hypotheses:
        # sacrebleu takes no empty set; this sentence adds zeros to all sums
        hypotheses, references = [""], [[""]]
    # images may have different numbers of captions
    most = max(len(lines) for lines in references)
    # sacrebleu reads a list of first references, one of second ones ..
    columns = [
        [lines[number] if number < len(lines) else None for lines in references]
        for number in range(most)
    ]
    # force: no warning about a full stop that stands apart, as in all tokenised text
    score = sacrebleu.metrics.BLEU(tokenize="none", force=True).corpus_score(
        hypotheses,
        columns,  # type: ignore[arg-type]  # None where an image has fewer: sacrebleu reads it
    )
    return corpus_bleu.bleu_sums(score)


def log_bleu(logs: List[Sums]) -> None:
    """Log ``bleu``, unless no caption was scored: the batches may hold no image's first one."""
    if corpus_bleu.log_bleu_sums(logs):
        metrics.log_derived("bleu", bleu_of_meters)


def _ngrams(words: List[str], order: int) -> "Counter[Tuple[str, ...]]":
    """Return how often each n-gram is in a line."""
    return Counter(tuple(words[start : start + order]) for start in range(len(words) - order + 1))


class Cider:
    """CIDEr-D of captions, with the rareness of n-grams in the references of all images.

    Args:
        references: of each image, tokenised lines.
    """

    def __init__(self, references: Sequence[List[str]]):
        self.images = len(references)
        self.frequency: Counter[Tuple[str, ...]] = Counter()
        for lines in references:
            # a set: an image counts once, however often its references hold the n-gram
            self.frequency.update(
                {
                    ngram
                    for line in lines
                    for order in ORDERS
                    for ngram in _ngrams(line.split(), order)
                }
            )

    def vector(self, line: str, order: int) -> Dict[Tuple[str, ...], float]:
        """Return g of a line, {n-gram: g(w)}."""
        everywhere = math.log(max(self.images, 1))  # log I
        return {
            ngram: count * (everywhere - math.log(max(1, self.frequency[ngram])))
            for ngram, count in _ngrams(line.split(), order).items()
        }

    def similarity(self, hypothesis: str, reference: str, order: int) -> float:
        """Return sim_n of one reference."""
        g_c, g_s = self.vector(hypothesis, order), self.vector(reference, order)
        norms = [math.sqrt(sum(value**2 for value in g.values())) for g in (g_c, g_s)]
        if not all(norms):  # a line shorter than n words, or of words that all images share
            return 0.0
        # clipped: repeating a rare word of the reference does not help
        product = sum(min(value, g_s.get(w, 0.0)) * g_s.get(w, 0.0) for w, value in g_c.items())
        difference = len(hypothesis.split()) - len(reference.split())
        return math.exp(-(difference**2) / (2 * SIGMA**2)) * product / (norms[0] * norms[1])

    def score(self, hypothesis: str, references: List[str]) -> float:
        """Return CIDEr-D of one image's caption, 0 .. 1000."""
        values = [
            self.similarity(hypothesis, line, order) for line in references for order in ORDERS
        ]
        # 10 in the definition, times 100
        return 1000.0 * sum(values) / len(values)

    def sums(self, hypotheses: List[str], references: List[List[str]]) -> Sums:
        """Return the sum of the scores and the number of images."""
        total = sum(self.score(line, lines) for line, lines in zip(hypotheses, references))
        return {"_cider_sum": total, "_cider_images": len(hypotheses)}


def log_cider(logs: List[Sums]) -> None:
    """Log ``cider``, unless no caption was scored."""
    if log_sums(logs, ("_cider_sum", "_cider_images"))["_cider_images"]:
        metrics.log_derived("cider", _cider)


def _cider(meters: Dict[str, Any]) -> float:
    """Return CIDEr-D of all that fairseq has added up."""
    total, images = (float(meters[f"_cider_{kind}"].sum) for kind in ("sum", "images"))
    return round(total / images, 2)
