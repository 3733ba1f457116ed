"""Intervals of differences: how often they hold what was drawn, and tables of Student's t."""

import math

import measured
import numpy as np
import pytest

from fairseq_ext.tools.evaluate.intervals import (
    UNKNOWN,
    Seeds,
    interval_of_difference,
    pooled,
    student_quantile,
)
from fairseq_ext.tools.evaluate.scores import Scored, resample


class Mean:
    """The mean of a number of each sentence, as a metric."""

    name = title = "mean"

    def score(self, sums):
        return sums[0] / sums[1]


def normal_runs(means, deviation, sentences, rng):
    """Runs whose sentences have normal scores."""
    return [
        np.stack([rng.normal(mean, deviation, sentences), np.ones(sentences)], axis=1)
        for mean in means
    ]


# printed tables of Student's t have these
@pytest.mark.parametrize(
    "freedom, quantile",
    [(1, 12.706), (2, 4.303), (3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042), (1000, 1.962)],
)
def test_the_quantile_of_student(freedom, quantile):
    assert student_quantile(freedom) == pytest.approx(quantile, abs=6e-4)
    # the pages of results are made without this package and its numpy
    assert measured.student_quantile(freedom) == pytest.approx(quantile, rel=1e-3)


def test_seeds_are_pooled_within_systems():
    """Squares 2, 0.5 and none over 2, 1 and 0 degrees of freedom; a diverged run counts nowhere."""
    resamples = resample(10, 50)

    def system(*values):
        return Scored(Mean(), [np.tile([value, 1.0], (10, 1)) for value in values], resamples)

    systems = [system(19, 20, 21), system(30, 31), system(7), system(1, math.nan)]
    # the sentences of a run are all alike: there are no other ones
    assert pooled(systems) == Seeds(*[pytest.approx(2.5 / 3)] * 2, 3)
    assert pooled([system(3), system(4), system(math.inf, 2)]) == UNKNOWN


@pytest.mark.parametrize("deviation", [0.0, 0.3])
def test_sentences_of_each_run_are_not_counted_as_seeds(deviation):
    rng, resamples = np.random.default_rng(3), resample(100, 500)
    systems = [
        Scored(Mean(), normal_runs(rng.normal(0, deviation, 4), 1, 100, rng), resamples)
        for _ in range(40)
    ]
    seeds = pooled(systems)
    assert seeds.between == pytest.approx(0.01 + deviation**2, rel=0.2)
    assert seeds.own == pytest.approx(deviation**2, rel=0.2, abs=0.002)


def test_an_interval_without_seeds_is_that_of_sentences():
    rng, resamples = np.random.default_rng(1), resample(400, 2000)
    before = Scored(Mean(), normal_runs([0], 3, 400, rng), resamples)
    after = Scored(Mean(), normal_runs([1], 4, 400, rng), resamples)
    low, high = interval_of_difference(before, after)
    # sqrt(9 + 16) / sqrt(400) is the standard error
    assert high - low == pytest.approx(2 * 1.96 * 0.25, rel=0.1)
    assert low < after.mean - before.mean < high


def test_an_interval_has_both_parts():
    """Sentences 0.25 and seeds 0.4 * sqrt(1/2 + 1): the wider the fewer the degrees of freedom."""
    rng, resamples = np.random.default_rng(2), resample(400, 2000)
    before = Scored(Mean(), normal_runs([0], 3, 400, rng), resamples)
    after = Scored(Mean(), normal_runs([1, 1], 4 * math.sqrt(2), 400, rng), resamples)
    both = 0.25**2 + 0.4**2 * 1.5
    for freedom, t in ((1000, 1.96), (2, student_quantile(2 * (both / 0.3) ** 2))):
        low, high = interval_of_difference(before, after, Seeds(0.2, 0.4**2, freedom))
        assert high - low == pytest.approx(2 * t * math.sqrt(both), rel=0.1)
        assert (low + high) / 2 == pytest.approx(after.mean - before.mean)
    # runs that agree, on sentences that do
    same = Scored(Mean(), [np.ones((400, 2))] * 2, resamples)
    assert interval_of_difference(same, same, Seeds(0.0, 0.0, 2)) == (0.0, 0.0)


@pytest.mark.parametrize("runs, deviation", [(1, 0.1), (3, 0.3), (2, 0.0)])
def test_intervals_hold_the_true_difference_as_often_as_they_say(runs, deviation):
    """Of five systems; the choice of sentences has a deviation of 0.1 for each run."""
    rng, resamples = np.random.default_rng(runs), resample(100, 100)
    trials, inside = 250, 0
    for _ in range(trials):
        systems = [
            Scored(Mean(), normal_runs(rng.normal(0, deviation, count), 1, 100, rng), resamples)
            for count in (runs, runs, 2, 2, 2)
        ]
        low, high = interval_of_difference(*systems[:2], pooled(systems))
        inside += low <= 0 <= high
    assert 0.91 <= inside / trials <= 0.99
