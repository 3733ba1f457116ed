"""Corpus BLEU of sums that batches and workers have added up.

The start-up hook loads this file: sacrebleu is imported where a score is computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

if TYPE_CHECKING:
    from fairseq.logging.meters import MetersDict


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
    from sacrebleu.metrics import BLEU

    score = BLEU.compute_bleu(
        correct=[int(count) for count in counts],
        total=[int(total) for total in totals],
        sys_len=int(sys_len),
        ref_len=int(ref_len),
        smooth_method="exp",
    )
    return round(score.score, 2)


def bleu_of_meters(meters: MetersDict, prefix: str = "_bleu") -> float:
    """Return BLEU of the sums in the meters ``prefix``_counts, _totals (4,), _sys_len, _ref_len.

    The meters have these names in fairseq's translation task and in its example of rerankers.
    """
    names = ("counts", "totals", "sys_len", "ref_len")
    return bleu_of_sums(*(meters[f"{prefix}_{name}"].sum for name in names))
