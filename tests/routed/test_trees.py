"""Phrase structure trees: what a tree becomes, and back: by hand, random and faulty ones."""

import random

import pytest

from fairseq_ext.routed.formats import Malformed, trees

TREEBANK = """
( (S
    (NP-SBJ-1 (NNP John) )
    (VP (VBZ has) (SBAR (-NONE- 0) (S (-NONE- *T*-1) ))
      (NP=2 (DT a) (NN and\\/or) ) )
    (-LRB- -LRB-) (NP (-NONE- *) ) (. .) ))
"""
WORDS = "John has a and/or ( ."


@pytest.mark.parametrize(
    "options, line",
    [
        ({}, "(S (NP NNP )NP (VP VBZ (NP DT NN )NP )VP -LRB- . )S"),
        ({"leaves": "xx"}, "(S (NP XX )NP (VP XX (NP XX XX )NP )VP XX XX )S"),
        ({"leaves": "word"}, "(S (NP John )NP (VP has (NP a and/or )NP )VP -LRB- . )S"),
        ({"function_tags": True}, "(S (NP-SBJ NNP )NP-SBJ (VP VBZ (NP DT NN )NP )VP -LRB- . )S"),
    ],
)
def test_tree_to_line(options, line):
    assert trees.forward(TREEBANK, **options) == (WORDS, line)


def test_line_to_tree():
    line = "(S (NP NNP )NP (VP VBZ )VP -LRB- . )S"
    expected = "( (S (NP (NNP John)) (VP (VBZ has)) (-LRB- -LRB-) (. .)) )\n"
    assert trees.backward("John has ( .", line) == expected
    words = line.replace("NNP", "John").replace("VBZ", "has")
    expected = "( (S (NP (XX John)) (VP (XX has)) (XX -LRB-) (XX .)) )\n"
    assert trees.backward("John has ( .", words, leaves="word") == expected


def random_tree(rng, depth):
    """Text of a tree without empty elements."""
    if depth == 0 or rng.random() < 0.3:
        return f"({rng.choice(['NN', '.', '-LRB-', 'PRP$'])} {rng.choice(['a', '-RRB-', 'c.d'])})"
    parts = " ".join(random_tree(rng, depth - 1) for _ in range(rng.randint(1, 3)))
    return f"({rng.choice(['S', 'NP', 'ADVP|PRT'])} {parts})"


def test_random_trees_survive_both_ways():
    rng = random.Random(2)
    for _ in range(100):
        text = f"( (S {random_tree(rng, 4)} (NN end)) )"
        assert trees.backward(*trees.forward(text)) == text + "\n"


@pytest.mark.parametrize(
    "text, reason",
    [
        ("(S (NP (NN a))", "not a tree .*expected"),
        ("(S (NN a)))", "not a tree"),
        ("(S (NP a b))", "word 'a' has no part of speech"),
        ("(S (NP a (NN b)))", "word 'a' has no part of speech"),
        ("(S (NP) (NN a))", "a bracket without content"),
        ("(S ((NP (NN a)) (NN b)))", "a bracket without label"),
        ("(S (NP (-NONE- *)))", "no words"),
    ],
)
def test_faulty_trees_are_named(text, reason):
    with pytest.raises(Malformed, match=reason):
        trees.forward(text)


@pytest.mark.parametrize(
    "line, reason",
    [
        ("(S NN )NP", "'\\)NP' where '\\)S' is due"),
        ("(S NN", r"\(S is not closed"),
        ("(S NN )S )S", "'no closing bracket' is due"),
        ("(S )S", r"nothing between \(S and \)S"),
        ("(S NN )S (S NN )S", "is not one bracket with everything inside"),
        ("NN", "'NN' is not one bracket"),
        ("", "'' is not one bracket"),
        ("( NN )", "'\\(' where"),
        ("(S NN) )S", r"a bracket within 'NN\)'"),
        ("(( NN )(", r"a bracket within '\(\('"),
        ("(S NN )S NN", "is not one bracket with everything inside"),
    ],
)
def test_lines_that_are_no_trees_are_named(line, reason):
    with pytest.raises(Malformed, match=reason):
        trees.read_line(line)


def test_as_many_leaves_as_words():
    with pytest.raises(Malformed, match="1 leaves for 2 words"):
        trees.backward("a b", "(S NN )S")


def test_trees_of_a_file_with_their_lines():
    text = "( (S (NN a)\n   (NN b)))\n\n(S (NN c)) (S\n(NN d))\n"
    assert list(trees.blocks(text.split("\n"))) == [
        (1, "( (S (NN a)\n   (NN b)))"),
        (4, "(S (NN c))"),
        (4, "(S\n(NN d))"),
    ]


@pytest.mark.parametrize("faulty", ["(S (NN b)", "(S (NN b)))", "S (NN b)"])
def test_a_faulty_tree_takes_no_other_with_it(faulty):
    lines = ["(S (NN a)", "   (NN b))", faulty, "(S (NN c))", "(S (NN d))"]
    good, bad = [], []
    for number, text in trees.blocks(lines):
        try:
            good.append(trees.forward(text)[0])
        except Malformed:
            bad.append(number)
    assert good[0] == "a b" and good[-2:] == ["c", "d"] and bad == [3]
