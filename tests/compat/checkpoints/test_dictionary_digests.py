"""Digests of dictionaries: their names, their order, and the comparison."""

from types import SimpleNamespace

import pytest
from common.words import dictionary_with

from fairseq_ext.compat.checkpoints.dictionary_digests import (
    different_dictionary,
    digest,
    digests,
    stored_digests,
    trained_languages,
)


def translation(source, target):
    cfg = SimpleNamespace(source_lang="xx", target_lang="yy")
    return SimpleNamespace(cfg=cfg, source_dictionary=source, target_dictionary=target)


def test_names_of_dictionaries():
    first, second = dictionary_with("a", "b"), dictionary_with("a", "c")
    assert list(digests(translation(first, second))) == ["xx", "yy"]
    assert list(digests(SimpleNamespace(dictionaries={"zz": first}))) == ["zz"]
    assert list(digests(SimpleNamespace(dicts={"zz": first}))) == ["zz"]
    one_side = SimpleNamespace(source_dictionary=first, target_dictionary=None)
    assert list(digests(one_side)) == ["source"]
    assert digests(SimpleNamespace()) == {}


def test_digest_knows_the_order():
    assert digest(dictionary_with("a", "b")) == digest(dictionary_with("a", "b"))
    assert digest(dictionary_with("a", "b")) != digest(dictionary_with("b", "a"))
    assert digest(dictionary_with("a", "b")).startswith("6:")  # four symbols of fairseq's own


@pytest.mark.parametrize(
    "present, expected",
    [(("a", "b"), None), (("b", "a"), "xx"), (("a", "c"), "xx"), (("a", "b", "c"), None)],
    ids=["same", "order", "words", "size"],
)
def test_comparison(present, expected):
    stored = digests(translation(dictionary_with("a", "b"), dictionary_with("c")))
    task = translation(dictionary_with(*present), dictionary_with("c"))
    assert different_dictionary(task, stored) == expected


def test_checkpoints_without_digests_are_taken():
    task = translation(dictionary_with("a"), dictionary_with("b"))
    assert different_dictionary(task, {}) is None
    assert different_dictionary(task, {"zz": digest(dictionary_with("q"))}) is None


@pytest.mark.parametrize(
    "state",
    [{}, {"extra_state": None}, {"extra_state": {}}, {"extra_state": {"dictionaries": None}}],
)
def test_checkpoints_that_record_nothing(state):
    assert stored_digests(state) == {}


def test_the_reverse_direction_is_compared_by_language():
    first, second = dictionary_with("a", "b"), dictionary_with("c", "d")
    stored = digests(translation(first, second))
    cfg = SimpleNamespace(source_lang="yy", target_lang="xx")
    reverse = SimpleNamespace(cfg=cfg, source_dictionary=second, target_dictionary=first)
    assert different_dictionary(reverse, stored) is None


def test_languages_of_a_training_that_took_them_from_its_data_folder():
    task, stored = {"source_lang": None, "target_lang": None}, {"yy": "4:a", "xx": "4:b"}
    assert trained_languages(task, stored) == ("yy", "xx")
    assert trained_languages(SimpleNamespace(**task), stored) == ("yy", "xx")
    assert trained_languages({**task, "source_lang": "yy"}, stored) == ("yy", "xx")
    assert trained_languages({"source_lang": "xx", "target_lang": "zz"}, stored) == ("xx", "zz")
    assert trained_languages(task, {}) == (None, None)  # of stock fairseq
    assert trained_languages(task, {"source": "4:a", "target": "4:b"}) == (None, None)
    assert trained_languages({}, stored) == (None, None)  # of a language model
