"""Scores of the auxiliary tasks: lines in, counts out.

Counts of several batches or workers are added up by name; ``f1`` and ``accuracy`` make percentages
of the sums. A line is what ``linearise`` writes, symbols separated by spaces.

    ner_f1, bracket_f1, triple_f1   matched, predicted, gold -> f1
    exact_match, token_accuracy     matched, total           -> accuracy
"""

from collections import Counter
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from .formats import Malformed, graphs, ner, trees

Counts = Dict[str, int]


def _both(hypotheses: Sequence[str], references: Sequence[str]) -> Iterator[Tuple[str, str]]:
    """Return pairs of lines. Raises ValueError when there are not equally many."""
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses for {len(references)} references")
    return zip(hypotheses, references)


def f1(counts: Counts) -> float:
    """Return 2 matched / (predicted + gold) in percent, the harmonic mean of precision and recall.

    Precision is matched / predicted, recall matched / gold.
    """
    return _percent(2 * counts["matched"], counts["predicted"] + counts["gold"])


def accuracy(counts: Counts) -> float:
    """Return matched / total in percent."""
    return _percent(counts["matched"], counts["total"])


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> Counts:
    """Return {"matched": lines that are right as a whole, "total": all lines}."""
    # by symbols: spaces between them do not count
    pairs = [(a.split(), b.split()) for a, b in _both(hypotheses, references)]
    return {"matched": sum(a == b for a, b in pairs), "total": len(pairs)}


def token_accuracy(hypotheses: Sequence[str], references: Sequence[str]) -> Counts:
    """Return {"matched": symbols that are right at their position, "total": all symbols}.

    The total is that of the longer line, so that missing and additional symbols count as wrong.
    """
    matched = total = 0
    for hypothesis, reference in _both(hypotheses, references):
        predicted, gold = hypothesis.split(), reference.split()
        matched += sum(a == b for a, b in zip(predicted, gold))
        total += max(len(predicted), len(gold))
    return {"matched": matched, "total": total}


def ner_f1(hypotheses: Sequence[str], references: Sequence[str]) -> Counts:
    """Return how many entities have the same type, beginning and end, as CoNLL's evaluation does.

    {"matched", "predicted", "gold", "wrong_length": lines with more or fewer tags than the
    reference}. A symbol in a hypothesis that is no tag counts as O; one in a reference raises
    ``Malformed``.
    """
    total: Counts = Counter(matched=0, predicted=0, gold=0, wrong_length=0)
    for hypothesis, reference in _both(hypotheses, references):
        tags, gold_tags = _tags(hypothesis), reference.split()
        # the same entity cannot occur twice in a sentence: sets are enough
        predicted, gold = set(ner.spans(tags)), set(ner.spans(gold_tags))
        total["matched"] += len(predicted & gold)
        total["predicted"] += len(predicted)
        total["gold"] += len(gold)
        total["wrong_length"] += len(tags) != len(gold_tags)
    return dict(total)


def _tags(line: str) -> List[str]:
    """Return the tags of a hypothesis, O for symbols that are none."""
    return [_tag(symbol) for symbol in line.split()]


def _tag(symbol: str) -> str:
    try:
        ner.split_tag(symbol)
    except Malformed:
        return ner.OUTSIDE
    return symbol


def constituents(tree: trees.Phrase) -> Counter:
    """Return {(label, start, end): how often it is in a tree}; leaves have numbers from 0."""
    counts: Counter = Counter()

    def end(phrase: trees.Phrase, start: int) -> int:
        place = start  # the number of the next leaf
        for child in phrase.children:
            place = place + 1 if isinstance(child, str) else end(child, place)
        counts[phrase.label, start, place] += 1
        return place

    end(tree, 0)
    return counts


def bracket_f1(hypotheses: Sequence[str], references: Sequence[str]) -> Counts:
    """Return how many phrases have the same label, first and last leaf (Parseval).

    {"matched", "predicted", "gold", "ill_formed": hypotheses that are no trees, "wrong_length":
    trees with more or fewer leaves than the reference}. An ill-formed hypothesis predicts nothing.
    Parts of speech do not count, punctuation and the outermost phrase do (evalb's parameter files
    leave punctuation out). A reference that is no tree raises ``Malformed``.
    """
    total: Counts = Counter(matched=0, predicted=0, gold=0, ill_formed=0, wrong_length=0)
    for hypothesis, reference in _both(hypotheses, references):
        gold_tree, tree = trees.read_line(reference), _tree(hypothesis)
        # counters, as a tree may hold the same phrase twice: (NP (NP ...)) over the same leaves
        gold = constituents(gold_tree)
        predicted = constituents(tree) if tree else Counter()
        # of a phrase that stands several times, the smaller of both numbers
        total["matched"] += sum((predicted & gold).values())
        total["predicted"] += sum(predicted.values())
        total["gold"] += sum(gold.values())
        total["ill_formed"] += tree is None
        total["wrong_length"] += tree is not None and len(tree.leaves()) != len(gold_tree.leaves())
    return dict(total)


def _tree(line: str) -> Optional[trees.Phrase]:
    try:
        return trees.read_line(line)
    except Malformed:
        return None


Triple = Tuple[str, str, str]


def triples(top: graphs.Node) -> "Counter[Triple]":
    """Return (concept, role, concept) of every relation of a graph, and ("", ":top", concept)."""
    counts: "Counter[Triple]" = Counter([("", ":top", top.concept)])
    waiting = [top]
    # counts do not depend on the order of visits
    while waiting:
        node = waiting.pop()
        for role, child in node.relations:
            counts[node.concept, role, child.concept] += 1
            waiting.append(child)
    return counts


def triple_f1(hypotheses: Sequence[str], references: Sequence[str]) -> Counts:
    """Return how many relations of linearised graphs, and top concepts, are the same.

    A relation is compared with the concepts at its ends. The result is
    {"matched", "predicted", "gold", "ill_formed": hypotheses that are no graphs}. An ill-formed
    hypothesis predicts nothing; a reference that is no graph raises ``Malformed``.

    Deviation from Smatch (Cai and Knight 2013), which maps the variables of two graphs onto each
    other: the lines have no variables. Concepts stand for them, so that the score is certain and
    needs no search from random beginnings.
    """
    total: Counts = Counter(matched=0, predicted=0, gold=0, ill_formed=0)
    for hypothesis, reference in _both(hypotheses, references):
        expected = triples(graphs.read_line(reference))
        try:
            predicted = triples(graphs.read_line(hypothesis))
        except Malformed:
            # the reference's relations still count as not found
            predicted = Counter()
            total["ill_formed"] += 1
        total["matched"] += sum((predicted & expected).values())
        total["predicted"] += sum(predicted.values())
        total["gold"] += sum(expected.values())
    return dict(total)
