"""Scores, intervals and tests of differences against sacrebleu and against resampling by loops."""

import math

import numpy as np
import pytest
import sacrebleu
from sacrebleu.significance import PairedTest
from tools.translations import damaged, sentences

from fairseq_ext.tools.evaluate import scores
from fairseq_ext.tools.evaluate.scores import (
    METRICS,
    Metric,
    Scored,
    p_value,
    paired_test,
    resample,
)

SACREBLEU = {"bleu": "BLEU", "chrf": "CHRF", "ter": "TER"}


def scored(name, runs, references, samples=1000):
    metric = Metric(name)
    statistics = [metric.statistics(run, references) for run in runs]
    return metric, Scored(metric, statistics, resample(len(references), samples))


@pytest.mark.parametrize("name", SACREBLEU)
def test_scores_intervals_and_p_values_are_those_of_sacrebleu(name):
    references = sentences(40)
    baseline, system = damaged(references, 0.5, 1), damaged(references, 0.45, 2)
    metric, before = scored(name, [baseline], references)
    _, after = scored(name, [system], references)
    their_metric = getattr(sacrebleu.metrics, SACREBLEU[name])()
    whole = their_metric.corpus_score(system, [references], n_bootstrap=1000)
    assert after.mean == pytest.approx(whole.score)
    assert after.interval() == pytest.approx(whole._ci, abs=1e-3)
    named = [("baseline", baseline), ("system", system)]
    for test, kind, number in (("bootstrap", "bs", 1000), ("randomisation", "ar", 500)):
        _, table = PairedTest(named, {name: their_metric}, [references], kind, number)()
        (paired,) = (values for key, values in table.items() if key != "System")
        (row,) = paired_test(metric, before, after, test, number)
        assert row["difference"] == pytest.approx(paired[1].score - paired[0].score)
        # sacrebleu adds in float32: a resample may fall on the other side of the limit
        expected = pytest.approx(paired[1].p_value, abs=2.5 / number)
        # edits are whole numbers: many exchanges yield the observed difference, which counts here
        has_ties = (name, kind) == ("ter", "ar")
        assert row["p"] > paired[1].p_value if has_ties else row["p"] == expected
        assert 0.001 < row["p"] < 1


@pytest.mark.parametrize("name", METRICS)
def test_a_resample_is_the_corpus_of_its_sentences(name):
    references = sentences(9)
    run = damaged(references, 0.4, 3)
    metric, resampled = scored(name, [run], references, samples=5)
    for counts, score in zip(resample(9, 5), resampled.samples[0]):
        assert counts.sum() == 9
        drawn = [place for place, often in enumerate(counts) for _ in range(often)]
        lines = [run[place] for place in drawn], [[references[place] for place in drawn]]
        assert score == pytest.approx(metric.metric.corpus_score(*lines).score)


def mean_of_scores(their_metric, runs, references, places):
    """The mean over the runs of the score of the sentences at these places."""
    scores = [
        their_metric.corpus_score(
            [run[place] for place in places], [[references[p] for p in places]]
        ).score
        for run in runs
    ]
    return sum(scores) / len(scores)


def by_resampling(their_metric, references, baseline, system, drawn):
    """What chance makes of the difference of the means, as loops over resamples and runs."""
    apart = []
    for places in drawn:
        before = mean_of_scores(their_metric, baseline, references, places)
        apart.append(abs(mean_of_scores(their_metric, system, references, places) - before))
    return [difference - sum(apart) / len(apart) for difference in apart]


def by_exchanging(their_metric, references, baseline, system, drawn):
    """The same after each exchange of translations, as loops over runs and lines."""
    differences, places = [], range(len(references))
    for exchange in drawn:
        apart = []
        for before, after in zip(baseline, system):
            first = [b if swap else a for swap, b, a in zip(exchange, before, after)]
            second = [a if swap else b for swap, b, a in zip(exchange, before, after)]
            scores = [
                mean_of_scores(their_metric, [run], references, places) for run in (first, second)
            ]
            apart.append(scores[0] - scores[1])
        differences.append(abs(sum(apart) / len(apart)))
    return differences


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_several_runs_are_tested_by_their_mean(test):
    references = sentences(12)
    baseline = [damaged(references, 0.5, seed) for seed in (1, 2)]
    system = [damaged(references, 0.4, seed) for seed in (3, 4)]
    number = 40
    metric, before = scored("chrf", baseline, references, number)
    _, after = scored("chrf", system, references, number)
    their_metric, rng = sacrebleu.metrics.CHRF(), np.random.default_rng(12345)
    if test == "bootstrap":
        drawn = rng.choice(12, size=(number, 12))
        chance = by_resampling(their_metric, references, baseline, system, drawn)
    else:
        drawn = rng.integers(2, size=(number, 12), dtype=bool)
        chance = by_exchanging(their_metric, references, baseline, system, drawn)
    difference = after.mean - before.mean
    expected = (sum(value >= abs(difference) for value in chance) + 1) / (number + 1)
    rows = paired_test(metric, before, after, test, number)
    assert rows[0] == {"difference": pytest.approx(difference), "p": pytest.approx(expected)}
    assert len(rows) == 3 and len({value["p"] for value in rows}) > 1
    for place in (0, 1):
        apart = after.values[place] - before.values[place]
        assert rows[1 + place]["difference"] == pytest.approx(apart)


def test_numbers_of_runs_may_differ():
    references = sentences(12)
    run = damaged(references, 0.5, 3)
    (metric, once), (_, twice), (_, base) = (
        scored("chrf", runs, references, 40) for runs in ([run], [run] * 2, [references])
    )
    assert paired_test(metric, base, twice) == paired_test(metric, base, once)


def test_equal_translations_do_not_differ():
    references = sentences(12)
    metric, run = scored("bleu", [damaged(references, 0.5, 1)], references)
    for test in ("bootstrap", "randomisation"):
        assert paired_test(metric, run, run, test, 50) == [{"difference": 0.0, "p": 1.0}]


def test_a_few_better_sentences_are_no_evidence_of_a_better_system():
    references = sentences(30)
    baseline = damaged(references, 0.5, 1)
    for better in (1, 3):
        system = references[:better] + baseline[better:]
        metric, before = scored("bleu", [baseline] * 2, references)
        _, after = scored("bleu", [system] * 2, references)
        for test in paired_test(metric, before, after, "randomisation", 1000):
            # only the exchange of all or none of them yields as large a difference
            assert test["p"] == pytest.approx(2 * 0.5**better, abs=0.05)


def test_differences_that_are_equal_but_for_rounding_are_reached():
    chance = np.array([1.0, 1.0 + 1e-12, 1.0 - 1e-12, 0.5])
    assert p_value(chance, 1.0) == pytest.approx(4 / 5)
    assert math.isnan(p_value(chance, math.nan))


def test_exchanges_are_computed_in_blocks(monkeypatch):
    references = sentences(32)  # so many: the blocks draw what one draws
    metric, before = scored("bleu", [damaged(references, 0.5, 1)], references, 10)
    _, after = scored("bleu", [damaged(references, 0.4, 2)], references, 10)
    tables = []
    for size in (100, 7):
        monkeypatch.setattr(scores, "TRIALS", size)
        tables.append(paired_test(metric, before, after, "randomisation", 50))
    assert tables[0] == tables[1]
