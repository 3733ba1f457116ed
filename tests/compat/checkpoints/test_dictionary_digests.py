"""Digests of dictionaries: their names, their order, and the comparison."""

import argparse

import pytest

from fairseq_ext.compat.checkpoints.dictionary_digests import (
    different_dictionary,
    digest,
    digests,
    stored_digests,
)


def dictionary(*symbols):
    from fairseq.data import Dictionary

    made = Dictionary()
    for symbol in symbols:
        made.add_symbol(symbol)
    return made


class Task:
    """A task with the attributes given."""

    def __init__(self, **attributes):
        vars(self).update(attributes)


def translation(source, target):
    cfg = argparse.Namespace(source_lang="xx", target_lang="yy")
    return Task(cfg=cfg, source_dictionary=source, target_dictionary=target)


def test_names_of_dictionaries():
    first, second = dictionary("a", "b"), dictionary("a", "c")
    assert list(digests(translation(first, second))) == ["xx", "yy"]
    assert list(digests(Task(dictionaries={"zz": first}))) == ["zz"]
    assert list(digests(Task(dicts={"zz": first}))) == ["zz"]
    assert list(digests(Task(source_dictionary=first, target_dictionary=None))) == ["source"]
    assert digests(Task()) == {}


def test_digest_knows_the_order():
    assert digest(dictionary("a", "b")) == digest(dictionary("a", "b"))
    assert digest(dictionary("a", "b")) != digest(dictionary("b", "a"))
    assert digest(dictionary("a", "b")).startswith("6:")  # four symbols of fairseq's own


@pytest.mark.parametrize(
    "present, expected",
    [(("a", "b"), None), (("b", "a"), "xx"), (("a", "c"), "xx"), (("a", "b", "c"), None)],
    ids=["same", "order", "words", "size"],
)
def test_comparison(present, expected):
    stored = digests(translation(dictionary("a", "b"), dictionary("c")))
    task = translation(dictionary(*present), dictionary("c"))
    assert different_dictionary(task, stored) == expected


def test_checkpoints_without_digests_are_taken():
    task = translation(dictionary("a"), dictionary("b"))
    assert different_dictionary(task, {}) is None
    assert different_dictionary(task, {"zz": digest(dictionary("q"))}) is None


@pytest.mark.parametrize(
    "state",
    [{}, {"extra_state": None}, {"extra_state": {}}, {"extra_state": {"dictionaries": None}}],
)
def test_checkpoints_that_record_nothing(state):
    assert stored_digests(state) == {}


def test_the_reverse_direction_is_compared_by_language():
    first, second = dictionary("a", "b"), dictionary("c", "d")
    stored = digests(translation(first, second))
    cfg = argparse.Namespace(source_lang="yy", target_lang="xx")
    reverse = Task(cfg=cfg, source_dictionary=second, target_dictionary=first)
    assert different_dictionary(reverse, stored) is None
