"""Scores of the auxiliary tasks against counts by hand and loops."""

import random

import pytest

from fairseq_ext.routed import scores
from fairseq_ext.routed.formats import Malformed


def added(first, second):
    return {name: first[name] + second[name] for name in first}


# ---------------------------------------------------------------- lines and symbols


def test_exact_match_and_token_accuracy():
    hypotheses = ["a b c", "a  x", "a b c d", ""]
    references = ["a b c", "a b", "a b", "a"]
    assert scores.exact_match(hypotheses, references) == {"matched": 1, "total": 4}
    # 3 of 3, 1 of 2, 2 of 4 (two too many), 0 of 1
    counts = scores.token_accuracy(hypotheses, references)
    assert counts == {"matched": 6, "total": 10} and scores.accuracy(counts) == 60


def test_nothing_at_all_is_zero_percent():
    empty = {"matched": 0, "total": 0, "predicted": 0, "gold": 0}
    for percent in (scores.accuracy, scores.f1):
        assert percent(empty) == 0


SCORES = (
    scores.exact_match,
    scores.token_accuracy,
    scores.ner_f1,
    scores.bracket_f1,
    scores.triple_f1,
)


@pytest.mark.parametrize("score", SCORES)
def test_as_many_hypotheses_as_references(score):
    with pytest.raises(ValueError, match="1 hypotheses for 2 references"):
        score(["O"], ["O", "O"])


# ---------------------------------------------------------------- named entities


def test_entities_by_hand():
    references = ["B-PER I-PER O B-LOC", "B-ORG B-ORG O", "O O"]
    hypotheses = [
        "B-PER I-PER O I-LOC",  # both right: I- after O begins an entity
        "B-ORG I-ORG O",  # one entity instead of two
        "O B-PER",  # one too many
    ]
    counts = scores.ner_f1(hypotheses, references)
    assert counts == {"matched": 2, "predicted": 4, "gold": 4, "wrong_length": 0}
    assert scores.f1(counts) == 50


def test_type_and_both_ends_must_agree():
    counts = scores.ner_f1(["B-A I-A O", "B-A I-A", "O B-A"], ["B-B I-B O", "B-A O", "B-A I-A"])
    assert counts == {"matched": 0, "predicted": 3, "gold": 3, "wrong_length": 0}


def test_predictions_may_be_of_wrong_length_or_no_tags():
    counts = scores.ner_f1(["B-A O B-A", "B-A", "<unk> I-"], ["B-A O", "B-A O", "B-A O"])
    assert counts == {"matched": 2, "predicted": 3, "gold": 3, "wrong_length": 2}
    with pytest.raises(Malformed, match="tag 'X'"):
        scores.ner_f1(["O"], ["X"])


def random_tags(rng, length):
    return [rng.choice(["O", "B-A", "I-A", "B-B", "I-B"]) for _ in range(length)]


def literal_entities(tags):
    """The entities by trying every type, beginning and end, one position after the other."""
    entities = set()
    for kind in "AB":
        for start in range(len(tags)):
            inside = start > 0 and tags[start - 1][2:] == kind
            if tags[start][2:] != kind or (tags[start] == f"I-{kind}" and inside):
                continue
            end = start + 1
            while end < len(tags) and tags[end] == f"I-{kind}":
                end += 1
            entities.add((kind, start, end))
    return entities


def test_entities_against_loops():
    rng, lines = random.Random(1), []
    matched = predicted = gold = 0
    for _ in range(150):
        first, second = (random_tags(rng, rng.randint(1, 7)) for _ in range(2))
        lines.append((" ".join(first), " ".join(second)))
        entities, gold_entities = literal_entities(first), literal_entities(second)
        matched += sum(entity in gold_entities for entity in entities)
        predicted, gold = predicted + len(entities), gold + len(gold_entities)
    counts = scores.ner_f1(*zip(*lines))
    assert (counts["matched"], counts["predicted"], counts["gold"]) == (matched, predicted, gold)
    assert matched > 50
    # sums of parts are the whole
    parts = [scores.ner_f1(*zip(*part)) for part in (lines[:70], lines[70:])]
    assert added(*parts) == counts


# ---------------------------------------------------------------- trees

GOLD = "(S (NP DT NN )NP (VP VBD (NP NN )NP (PP IN (NP NN )NP )PP )VP )S"


def test_brackets_by_hand():
    # S 0-6, NP 0-2, VP 2-6, NP 3-4, PP 4-6, NP 5-6 against the PP attached to the object
    other = "(S (NP DT NN )NP (VP VBD (NP (NP NN )NP (PP IN (NP NN )NP )PP )NP )VP )S"
    counts = scores.bracket_f1([other], [GOLD])
    assert counts == {
        "matched": 6, "predicted": 7, "gold": 6, "ill_formed": 0, "wrong_length": 0,
    }  # fmt: skip
    assert scores.f1(counts) == pytest.approx(100 * 12 / 13)


def test_the_label_and_how_often_it_stands_count():
    counts = scores.bracket_f1(["(X (NP NN )NP )X"], ["(X (VP NN )VP )X"])
    assert (counts["matched"], counts["predicted"], counts["gold"]) == (1, 2, 2)
    counts = scores.bracket_f1(["(X (X (X NN )X )X )X"], ["(X (X NN )X )X"])
    assert (counts["matched"], counts["predicted"], counts["gold"]) == (2, 3, 2)


def test_parts_of_speech_do_not_count():
    counts = scores.bracket_f1([GOLD.replace("NN", "JJ")], [GOLD])
    assert scores.f1(counts) == 100


@pytest.mark.parametrize("line", ["", "(S NN", "(S NN )NP", "NN", "(S )S", "(S NN )S (S NN )S"])
def test_ill_formed_trees_predict_nothing(line):
    counts = scores.bracket_f1([line, "(S NN )S"], ["(S NN )S", "(S NN NN )S"])
    assert counts == {
        "matched": 0, "predicted": 1, "gold": 2, "ill_formed": 1, "wrong_length": 1,
    }  # fmt: skip
    with pytest.raises(Malformed):
        scores.bracket_f1(["(S NN )S"], [line])


def test_constituents_against_the_brackets_of_the_line():
    """Every bracket once, its ends found by counting the leaves before and inside it."""
    symbols = GOLD.split()
    expected = []
    for place, symbol in enumerate(symbols):
        if symbol.startswith("("):
            depth, end = 1, place
            while depth:
                end += 1
                depth += symbols[end].startswith("(") - symbols[end].startswith(")")
            leaves = [not piece.startswith(("(", ")")) for piece in symbols]
            expected.append((symbol[1:], sum(leaves[:place]), sum(leaves[:end])))
    spans = scores.constituents(scores.trees.read_line(GOLD))
    assert sorted(spans.elements()) == sorted(expected) and len(expected) == 6


# ---------------------------------------------------------------- graphs


GRAPH = "( know :ARG0 i :ARG1 ( it :mod i ) )"


@pytest.mark.parametrize(
    "line, matched, predicted, ill_formed",
    [
        (GRAPH, 4, 4, 0),
        ("( know :ARG1 ( it :mod i ) :ARG0 i )", 4, 4, 0),  # the order does not count
        ("( know :ARG0 i :ARG1 it )", 3, 3, 0),
        ("know", 1, 1, 0),
        ("( know :ARG0 i :ARG0 i )", 2, 3, 0),  # the second one is not in the reference
        ("( it :mod i )", 1, 2, 0),
        ("( know :ARG0 i", 0, 0, 1),
        ("", 0, 0, 1),
    ],
)
def test_triples_of_graphs(line, matched, predicted, ill_formed):
    counts = scores.triple_f1([line], [GRAPH])
    assert counts == dict(matched=matched, predicted=predicted, gold=4, ill_formed=ill_formed)


def test_a_reference_that_is_no_graph():
    with pytest.raises(Malformed):
        scores.triple_f1(["know"], ["( know"])
