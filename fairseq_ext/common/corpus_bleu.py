"""Corpus BLEU in parts: sums, which batches and workers add up, and the score of the sums."""

from typing import Dict, Sequence

from sacrebleu.metrics import BLEU
from sacrebleu.metrics.bleu import BLEUScore

ORDER = 4  # the longest n-grams
# fairseq prints no meters whose names begin with "_"
NAMES = (
    "_bleu_sys_len",
    "_bleu_ref_len",
    *(f"_bleu_{sums}_{order}" for sums in ("counts", "totals") for order in range(ORDER)),
)


def bleu_sums(score: BLEUScore) -> Dict[str, int]:
    """Return the lengths and n-gram counts of a batch under ``NAMES``, from sacrebleu's score."""
    return dict(zip(NAMES, (score.sys_len, score.ref_len, *score.counts, *score.totals)))


def bleu_of_sums(
    counts: Sequence[float], totals: Sequence[float], sys_len: float, ref_len: float
) -> float:
    """Return BLEU, 0 to 100 with two digits, of sums.

    Args:
        counts: n-grams that hypotheses share with their references, for n = 1 to 4.
        totals: n-grams of the hypotheses.
        sys_len: words of the hypotheses.
        ref_len: words of the references.
    """
    score = BLEU.compute_bleu(
        correct=[int(count) for count in counts],
        total=[int(total) for total in totals],
        sys_len=int(sys_len),
        ref_len=int(ref_len),
        smooth_method="exp",
    )
    return round(score.score, 2)
