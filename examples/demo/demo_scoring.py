"""Hypotheses out of fairseq-generate's output, their scores, and the verdict of the demo."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Dict, List, Sequence, Tuple

_HYPOTHESIS = re.compile(r"^D-(\d+)\t[^\t]+\t(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Score:
    """BLEU and chrF of one direction, each with sacrebleu's signature."""

    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str


def read_hypotheses(output: str, count: int) -> List[str]:
    """Return the detokenised hypotheses (lines "D-number"), in the order of the test file.

    :param output: what fairseq-generate printed, with --nbest 1
    :param count: lines of the test file
    :raises ValueError: when one is missing or comes twice
    """
    hypotheses = {int(number): text for number, text in _HYPOTHESIS.findall(output)}
    lines = len(_HYPOTHESIS.findall(output))
    if sorted(hypotheses) != list(range(count)) or lines != count:
        raise ValueError(
            f"fairseq-generate printed {lines} hypotheses for {len(hypotheses)} sentences; "
            f"it must print one for each of the {count} sentences of the test file"
        )
    return [hypotheses[number] for number in range(count)]


def score(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Return corpus BLEU and chrF of raw text against raw references."""
    from sacrebleu.metrics import BLEU, CHRF

    bleu, chrf = BLEU(), CHRF()
    return Score(
        bleu.corpus_score(hypotheses, [references]).score,
        chrf.corpus_score(hypotheses, [references]).score,
        str(bleu.get_signature()),
        str(chrf.get_signature()),
    )


def one_decimal(value: float, required: float) -> str:
    """Return a score rounded to one decimal; one that misses the threshold never looks like it."""
    return f"{value if value >= required else math.floor(value * 10) / 10:.1f}"


def verdict(bleu: Dict[str, float], required: float) -> Tuple[str, int]:
    """Return the last line of the demo and its exit status.

    :param bleu: BLEU by direction, such as {"en-de": 97.2, "de-en": 96.8}
    :param required: what every direction has to reach
    """
    numbers = " ".join(f"{pair}={one_decimal(value, required)}" for pair, value in bleu.items())
    if all(value >= required for value in bleu.values()):
        return f"demo: OK {numbers}", 0
    return f"demo: FAILED {numbers}, at least {required:.1f} BLEU is needed in each direction", 1
