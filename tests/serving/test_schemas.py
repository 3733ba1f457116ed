"""Shapes: an error names the place in the JSON, what is there, and what is allowed."""

import pytest

from fairseq_ext.tools.serving.limits import Limits
from fairseq_ext.tools.serving.schemas import (
    LISTS,
    RESULTS,
    Refused,
    answer_schema,
    check,
    request_schemas,
)

SCHEMAS = request_schemas(Limits(max_sentences=3, max_characters=5, max_beam=4))
WRONG = [
    ("translate", [], 400, "$", "list; allowed: object"),
    ("translate", None, 400, "$", "None; allowed: object"),
    ("translate", {}, 400, "$", "the field 'sentences' is missing"),
    ("translate", {"sentences": "text"}, 400, "$.sentences", "'text'; allowed: array"),
    ("translate", {"sentences": []}, 422, "$.sentences", "0 entries; allowed: at least 1"),
    ("translate", {"sentences": ["a"] * 4}, 422, "$.sentences", "4 entries; allowed: at most 3"),
    ("translate", {"sentences": ["a", 5]}, 400, "$.sentences[1]", "5; allowed: string or array"),
    ("translate", {"sentences": ["abcdef"]}, 422, "$.sentences[0]", "6 characters; allowed: at"),
    ("translate", {"sentences": [["a"]]}, 422, "$.sentences[0]", "1 entries; allowed: at least 2"),
    ("translate", {"sentences": [["a", {}]]}, 400, "$.sentences[0][1]", "dict; allowed: string"),
    ("translate", {"sentences": ["a"], "beam": True}, 400, "$.beam", "True; allowed: integer"),
    ("translate", {"sentences": ["a"], "beam": 2.5}, 400, "$.beam", "2.5; allowed: integer"),
    ("translate", {"sentences": ["a"], "beam": 5}, 422, "$.beam", "5; allowed: 1 to 4"),
    ("translate", {"sentences": ["a"], "bean": 5}, 400, "$", "the field 'bean' is unknown"),
    ("translate", {"sentences": ["a"], "lm_path": "f"}, 400, "$", "the field 'lm_path' is unk"),
    ("translate", {"sentences": ["a"], "source_average": "x"}, 400, "$.source_average", "early"),
    ("translate", {"sentences": ["a"], "dual_alpha": -1}, 422, "$.dual_alpha", "allowed: 0 to 1"),
    ("translate", {"sentences": ["a"], "model": 1}, 400, "$.model", "1; allowed: string"),
    ("score", {"sources": ["a"]}, 400, "$", "the field 'targets' is missing"),
    ("classify", {"texts": [["a", "b"]]}, 400, "$.texts[0]", "list; allowed: string"),
    ("perplexity", {"texts": {"a": 1}}, 400, "$.texts", "dict; allowed: array"),
]


@pytest.mark.parametrize("operation, value, status, path, message", WRONG)
def test_a_wrong_value_is_named(operation, value, status, path, message):
    with pytest.raises(Refused) as refused:
        check(value, SCHEMAS[operation])
    error = refused.value
    assert (error.status, error.path) == (status, path) and message in error.message


def test_a_long_wrong_value_is_cut():
    with pytest.raises(Refused) as refused:
        check({"texts": "x" * 1000}, SCHEMAS["classify"])
    assert len(refused.value.message) < 100


def test_right_values_pass():
    check({"sentences": ["a", ["b", "c"]], "beam": 4, "lenpen": 1}, SCHEMAS["translate"])
    check({"sources": ["a"], "targets": [""], "model": "m"}, SCHEMAS["score"])


def test_every_operation_has_a_request_and_an_answer():
    assert set(SCHEMAS) == set(LISTS) == set(RESULTS)
    for operation in LISTS:
        assert LISTS[operation] in answer_schema(operation)["properties"]
