"""Scores of the auxiliary tasks: lines in, counts out.

Counts of several batches or workers are added up by name; ``f1`` and ``accuracy`` make percentages
of the sums. A line is what ``linearise`` writes, symbols separated by spaces.

    ner_f1, bracket_f1          matched, predicted, gold     -> f1, precision, recall
    exact_match, token_accuracy matched, total               -> accuracy
"""

from collections import Counter
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from .formats import Malformed, ner, trees

Counts = Dict[str, int]


def _both(hypotheses: Sequence[str], references: Sequence[str]) -> Iterator[Tuple[str, str]]:
    """Pairs of lines. Raises ValueError when there are not equally many."""
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses for {len(references)} references")
    return zip(hypotheses, references)


def f1(counts: Counts) -> float:
    """Percent: 2 matched / (predicted + gold), the harmonic mean of precision and recall."""
    return _percent(2 * counts["matched"], counts["predicted"] + counts["gold"])


def precision(counts: Counts) -> float:
    """Percent of what was predicted that is right."""
    return _percent(counts["matched"], counts["predicted"])


def recall(counts: Counts) -> float:
    """Percent of what should have been found that was."""
    return _percent(counts["matched"], counts["gold"])


def accuracy(counts: Counts) -> float:
    """Percent: matched / total."""
    return _percent(counts["matched"], counts["total"])


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> Counts:
    """Lines that are right as a whole: {"matched", "total"}."""
    pairs = [(a.split(), b.split()) for a, b in _both(hypotheses, references)]
    return {"matched": sum(a == b for a, b in pairs), "total": len(pairs)}


def token_accuracy(hypotheses: Sequence[str], references: Sequence[str]) -> Counts:
    """Symbols that are right at their position: {"matched", "total"}.

    The longer of the two lines counts, so that what is missing and what is too much is wrong.
    """
    matched = total = 0
    for hypothesis, reference in _both(hypotheses, references):
        found, wanted = hypothesis.split(), reference.split()
        matched += sum(a == b for a, b in zip(found, wanted))
        total += max(len(found), len(wanted))
    return {"matched": matched, "total": total}


def ner_f1(hypotheses: Sequence[str], references: Sequence[str]) -> Counts:
    """Entities of the same type, beginning and end, as the CoNLL evaluation counts them.

    {"matched", "predicted", "gold", "wrong_length": lines with more or fewer tags than the
    reference}. A symbol in a hypothesis that is no tag counts as O; one in a reference raises
    ``Malformed``.
    """
    total: Counts = Counter(matched=0, predicted=0, gold=0, wrong_length=0)
    for hypothesis, reference in _both(hypotheses, references):
        tags, wanted = [_tag(one) for one in hypothesis.split()], reference.split()
        found, gold = set(ner.spans(tags)), set(ner.spans(wanted))
        total["matched"] += len(found & gold)
        total["predicted"] += len(found)
        total["gold"] += len(gold)
        total["wrong_length"] += len(tags) != len(wanted)
    return dict(total)


def _tag(symbol: str) -> str:
    try:
        ner.split_tag(symbol)
    except Malformed:
        return ner.OUTSIDE
    return symbol


def constituents(tree: trees.Phrase) -> Counter:
    """How often each (label, start, end) is in a tree; leaves are counted from 0."""
    found: Counter = Counter()

    def end(phrase: trees.Phrase, start: int) -> int:
        place = start
        for child in phrase.children:
            place = place + 1 if isinstance(child, str) else end(child, place)
        found[phrase.label, start, place] += 1
        return place

    end(tree, 0)
    return found


def bracket_f1(hypotheses: Sequence[str], references: Sequence[str]) -> Counts:
    """Labelled bracketing (Parseval): phrases of the same label, first and last leaf.

    {"matched", "predicted", "gold", "ill_formed": hypotheses that are no trees, "wrong_length":
    trees with more or fewer leaves than the reference}. An ill-formed hypothesis predicts nothing.
    Parts of speech do not count, punctuation and the outermost phrase do (evalb's parameter files
    leave punctuation out). A reference that is no tree raises ``Malformed``.
    """
    total: Counts = Counter(matched=0, predicted=0, gold=0, ill_formed=0, wrong_length=0)
    for hypothesis, reference in _both(hypotheses, references):
        wanted, tree = trees.read_line(reference), _tree(hypothesis)
        gold = constituents(wanted)
        found = constituents(tree) if tree else Counter()
        total["matched"] += sum((found & gold).values())
        total["predicted"] += sum(found.values())
        total["gold"] += sum(gold.values())
        total["ill_formed"] += tree is None
        total["wrong_length"] += tree is not None and len(tree.leaves()) != len(wanted.leaves())
    return dict(total)


def _tree(line: str) -> Optional[trees.Phrase]:
    try:
        return trees.read_line(line)
    except Malformed:
        return None


def by_type(hypotheses: List[str], references: List[str]) -> Dict[str, Counts]:
    """``ner_f1`` of each type of entity alone: {type: {"matched", "predicted", "gold"}}."""
    total: Dict[str, Counts] = {}
    for hypothesis, reference in _both(hypotheses, references):
        found = set(ner.spans([_tag(one) for one in hypothesis.split()]))
        gold = set(ner.spans(reference.split()))
        for name, entities in (("matched", found & gold), ("predicted", found), ("gold", gold)):
            for one in entities:
                counts = total.setdefault(one.kind, dict(matched=0, predicted=0, gold=0))
                counts[name] += 1
    return dict(sorted(total.items()))
