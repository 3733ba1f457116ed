"""The 95% confidence interval of a difference: other sentences and other seeds.

A difference varies with the sentences of the test set, which the bootstrap resamples, and with the
seeds of the trainings. Runs of a system differ by both: each has sentences that it translates
better than the others do, and it may be better as a whole. The latter is the seeds' own part. It is
pooled over all systems that were scored on the set, because two or three runs of one say little.
"""

import math
from typing import Iterable, NamedTuple, Tuple

import numpy as np

from .scores import Scored

LEVEL = 0.95
# of the numerical integral: the quantile has four correct digits for 1 to 1,000 degrees of freedom
POINTS = 200_000


class Seeds(NamedTuple):
    """How far the runs of a system lie apart: variances of the score of one run.

    between: on this test set; own: what other sentences would leave of it; freedom: degrees of
    freedom of ``between``.
    """

    between: float
    own: float
    freedom: int


UNKNOWN = Seeds(0.0, 0.0, 0)  # of single runs


def pooled(systems: Iterable[Scored]) -> Seeds:
    """Return how far runs lie apart within systems; those with a run that diverged are left out."""
    squares, of_sentences, freedom = 0.0, 0.0, 0
    for system in systems:
        values = np.array(system.values)
        if np.isfinite(values).all() and np.isfinite(system.samples).all():
            apart = system.samples - system.samples.mean(axis=0)  # (n, R)
            squares += float(np.square(values - values.mean()).sum())
            of_sentences += float(apart.var(axis=1, ddof=1).sum())
            freedom += len(values) - 1
    if not freedom:
        return UNKNOWN
    return Seeds(squares / freedom, max(squares - of_sentences, 0.0) / freedom, freedom)


def student_quantile(freedom: float) -> float:
    """Return the t that Student's distribution exceeds in absolute value in 5% of cases.

    freedom: degrees of freedom, 1 and more. With t = sqrt(freedom) * tan(angle) the density of the
    angle is cos(angle) ^ (freedom - 1), whose integral is taken by the midpoint rule.
    """
    angles = (np.arange(POINTS) + 0.5) / POINTS * (math.pi / 2)
    share = np.cumsum(np.cos(angles) ** (freedom - 1))
    # half a step further than the midpoint up to which the sum reaches
    angle = np.interp(LEVEL, share / share[-1], angles) + math.pi / (4 * POINTS)
    return math.sqrt(freedom) * math.tan(angle)


def interval_of_difference(
    baseline: Scored, system: Scored, seeds: Seeds = UNKNOWN
) -> Tuple[float, float]:
    """Return the 95% confidence interval of the difference of the means over runs, (low, high).

    Runs count as independent of each other. Where two systems share trainings, as two searches with
    one checkpoint do, the interval is too wide. Without ``seeds`` it is about sentences alone.
    Degrees of freedom: Satterthwaite 1946, those of the sentences being many.
    """
    apart = system.samples.mean(axis=0) - baseline.samples.mean(axis=0)  # (R,)
    if not seeds.freedom:
        low, high = np.percentile(apart, (50 - 50 * LEVEL, 50 + 50 * LEVEL))
        return float(low), float(high)
    share = 1 / len(baseline.values) + 1 / len(system.values)
    variance = float(apart.var(ddof=1)) + seeds.own * share
    ratio = variance / (seeds.between * share) if seeds.between else math.inf
    half = student_quantile(min(max(seeds.freedom * ratio**2, 1), 1000)) * math.sqrt(variance)
    difference = system.mean - baseline.mean
    return difference - half, difference + half
