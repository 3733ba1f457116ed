"""Corpus BLEU in parts: the sums of a batch, and the meters in which batches and workers add up."""

from typing import Any, Dict, Sequence

import numpy as np
from fairseq import metrics
from sacrebleu.metrics.bleu import BLEUScore

from .log_sums import logged_sum

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


def log_bleu_sums(logging_outputs: Sequence[Dict[str, Any]], prefix: str = "_bleu") -> int:
    """Log the sums of all workers for ``compat.corpus_bleu.bleu_of_meters``.

    Returns the number of words of the references; without any there is no BLEU.
    """
    sums = {name: int(logged_sum(logging_outputs, name)) for name in NAMES}
    for name in ("counts", "totals"):
        # by n: 1, 2, 3, 4; of the meter its sum over the batches is read, not its mean
        by_order = [sums[f"_bleu_{name}_{order}"] for order in range(ORDER)]
        metrics.log_scalar(f"{prefix}_{name}", np.array(by_order))
    for name in ("sys_len", "ref_len"):
        metrics.log_scalar(f"{prefix}_{name}", sums[f"_bleu_{name}"])
    return sums["_bleu_ref_len"]
