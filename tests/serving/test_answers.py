"""Results as JSON."""

import json
import math

import numpy as np
import pytest

from fairseq_ext.inference.results import (
    Classification,
    Hypothesis,
    Perplexity,
    Score,
    Translation,
)
from fairseq_ext.tools.serving import answers
from fairseq_ext.tools.serving.schemas import RESULTS, check

EMPTY = Hypothesis("", [], -math.inf, [])
EXTRAS = {"twin_distance": np.array([0.5, math.nan]), "dual": {"rank": 0, "score": -1.5}}
FULL = Hypothesis("a", ["a", "</s>"], -0.5, [-0.1, -0.9], np.eye(2, dtype=np.float32), EXTRAS)
LABELLED = Classification("a", "x", {"x": 1.0}, ["a"], {"s": np.ones(1), "p": np.ones(1)})


def test_numbers_that_are_none_are_null():
    values = [math.nan, -math.inf, 1 / 3, 7, True, None, "x", np.array([math.inf])]
    assert answers.plain(values) == [None, None, 0.33333, 7, True, None, "x", [None]]


@pytest.mark.parametrize(
    "operation, answer",
    [
        ("translate", answers.of_translation(Translation("a", ["a"], [FULL, EMPTY]))),
        ("translate", answers.of_translation(Translation(("a", "b"), [], [EMPTY], "why"))),
        ("score", answers.of_score(Score("a", "b", ["b"], -1.0, [-1.0], np.eye(1)), True)),
        ("score", answers.of_score(Score("a", "b", [], -math.inf, [], None, "why"), True)),
        ("classify", answers.of_classification(LABELLED)),
        ("classify", answers.of_classification(Classification("a", "", {}, [], None, "why"))),
        ("perplexity", answers.of_perplexity(Perplexity("a", 2.0, ["a"], -1.0, [-1.0]))),
        ("perplexity", answers.of_perplexity(Perplexity("a", math.inf, [], -math.inf, [], "why"))),
    ],
)  # fmt: skip
def test_answers_have_their_schema(operation, answer):
    check(json.loads(json.dumps(answer, allow_nan=False)), RESULTS[operation])


def test_attention_of_a_score_is_left_out():
    result = Score("a", "b", ["b"], -1.0, [-1.0], np.eye(1))
    assert answers.of_score(result, False)["attention"] is None


def test_arrays_become_lists():
    (first, _) = answers.of_translation(Translation("a", ["a"], [FULL, EMPTY]))["hypotheses"]
    assert first["attention"] == [[1, 0], [0, 1]]
    assert first["extras"] == {"twin_distance": [0.5, None], "dual": {"rank": 0, "score": -1.5}}
