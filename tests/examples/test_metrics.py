"""Metrics as functions of sums over lines."""

import math
import random

import numpy as np
import pytest
from experiments import UsageError
from experiments.metrics import NAMES, mcnemar, metric_named

from fairseq_ext.routed import scores as routed


@pytest.mark.parametrize(
    "name, lines, references, value",
    [
        ("cer", ["abc", ""], ["abd", "x"], 50.0),
        ("wer", ["one two", "three"], ["one", "three"], 50.0),
        ("right", ["a", "c"], ["b\ta", "d\te"], 50.0),
        ("error", ["pos", "neg", "pos", "pos"], ["pos"] * 4, 25.0),
        ("label", ["pos", "neg", "pos", "pos"], ["pos"] * 4, 75.0),
        ("perplexity", ["2.0 2", "4.0 1"], ["", ""], math.exp(2)),
        ("nats", ["2.0 2", "4.0 1"], ["", ""], 3.0),
        ("likelihood", ["2.0 2", "4.0 1"], ["", ""], -3.0),
        ("accuracy", ["a b", "c"], ["a x", "c d"], 50.0),
        ("exact", ["a b", "c"], ["a b", "c d"], 50.0),
    ],
)
def test_values_by_hand(name, lines, references, value):
    metric = metric_named(name)
    sums = metric.statistics(lines, references)
    assert metric.score(sums.sum(axis=0)) == pytest.approx(value)
    assert len(sums) == len(lines)


@pytest.mark.parametrize(
    "nats, value", [(800, math.inf), (math.inf, math.inf), (math.nan, math.nan)]
)
def test_the_perplexity_of_a_run_that_diverged(nats, value):
    metric = metric_named("perplexity")
    sums = metric.statistics([f"{2 * nats} 2"], [""]).sum(axis=0)
    assert metric.score(sums) == pytest.approx(value, nan_ok=True)


def test_f1_of_lines_is_that_of_the_set():
    rng = random.Random(1)
    tags = ["O", "B-PER", "I-PER", "B-LOC"]
    gold = [" ".join(rng.choice(["O", "B-PER", "B-LOC"]) for _ in range(5)) for _ in range(20)]
    tagged = [" ".join(rng.choice(tags) for _ in range(5)) for _ in range(20)]
    metric = metric_named("ner_f1")
    value = metric.score(metric.statistics(tagged, gold).sum(axis=0))
    assert value == pytest.approx(routed.f1(routed.ner_f1(tagged, gold)))


@pytest.mark.parametrize(
    "name, lines, references, count",
    [
        ("ner_wrong_length", ["B-A O", "O B-A"], ["B-A O", "O"], 1),
        ("ner_ill_formed", ["B-A x"], ["B-A O"], 0),
        ("bracket_ill_formed", ["(S A A )S", "(S A"], ["(S A )S", "(S A )S"], 1),
        ("bracket_wrong_length", ["(S A A )S", "(S A"], ["(S A )S", "(S A )S"], 1),
    ],
)
def test_lines_with_faults(name, lines, references, count):
    metric = metric_named(name)
    assert metric.score(metric.statistics(lines, references).sum(axis=0)) == count


def test_several_references_are_those_of_sacrebleu():
    from sacrebleu.metrics import BLEU

    lines = ["a man runs in the park today", "two dogs are here now"]
    references = [["a man runs in a park", "a man is running"], ["two dogs", "dogs are here now"]]
    metric = metric_named("bleu_several")
    sums = metric.statistics(lines, ["\t".join(many) for many in references])
    expected = BLEU().corpus_score(lines, [list(side) for side in zip(*references)]).score
    assert metric.score(sums.sum(axis=0)) == pytest.approx(expected)


def test_a_line_with_fewer_references_is_named():
    metric = metric_named("bleu_several")
    for other, count in (("b", 1), ("b\tc\td", 3)):
        with pytest.raises(UsageError, match=f"line 2 has {count} and the first 2"):
            metric.statistics(["a", "b"], ["a\tb", other])


def test_mcnemar_is_the_binomial_test():
    def sums(*runs):
        return np.array([[value, 1.0] for value, count in runs for _ in range(count)])

    # six against one of seven
    first, second = sums((1, 7), (0, 4)), sums((0, 6), (1, 2), (0, 3))
    assert mcnemar(first, second) == mcnemar(second, first) == pytest.approx(2 * (1 + 7) / 2**7)
    assert mcnemar(first, first) == 1
    many = mcnemar(sums((1, 3000), (0, 2800)), sums((0, 3000), (1, 2800)))
    normal = math.erfc((200 - 1) / math.sqrt(5800) / math.sqrt(2))
    assert many == pytest.approx(normal, rel=0.02)


def test_every_name_is_a_metric():
    for name in NAMES:
        metric = metric_named(name)
        assert metric.name and metric.title
