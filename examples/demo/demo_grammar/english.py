"""English: subject-verb-object, do-support, adverbs at the end."""

from __future__ import annotations

from typing import List, Optional, Tuple

from .lexicon import TIMES, Verb
from .meaning import Clause, NounPhrase, Sentence

# third person singular, first person singular, all others
_BE = {"present": ("is", "am", "are"), "past": ("was", "was", "were")}
_HAVE = ("has", "have", "have")
_DO = {"present": ("does", "do", "do"), "past": ("did", "did", "did")}
_PLURAL_DETERMINERS = {"a": "", "this": "these"}


def _person(subject: Optional[NounPhrase]) -> int:
    """Return 0 for the third person singular (also "who"), 1 for "I", 2 for everything else."""
    if subject is None or subject.pronoun in ("he", "she"):
        return 0
    if subject.pronoun:
        return 1 if subject.pronoun == "I" else 2
    return 2 if subject.plural else 0


def _phrase(phrase: NounPhrase) -> List[str]:
    """Return the words of a noun phrase with its relative clause."""
    if phrase.pronoun:
        return [phrase.pronoun]
    determiner = phrase.determiner
    if phrase.plural:
        determiner = _PLURAL_DETERMINERS.get(determiner, determiner)
    words = [phrase.adjective.en] if phrase.adjective else []
    words.append(phrase.noun.en[phrase.plural])
    if determiner == "a" and words[0][0] in "aeiou":
        determiner = "an"
    words = [determiner] * bool(determiner) + words
    if phrase.relative is not None:
        words += _relative(phrase, phrase.relative)
    return words


def _relative(head: NounPhrase, clause: Clause) -> List[str]:
    if clause.missing == "object":
        return ["that", *_phrase(clause.subject), *_tail(clause, clause.subject)]
    return ["who", *_tail(clause, head)]


def _verb(
    verb: Optional[Verb], tense: str, person: int, passive: bool, support: bool
) -> Tuple[str, List[str]]:
    """Return the finite auxiliary ("" if there is none) and the rest of the verb group.

    ``support`` asks for an auxiliary, for a negation or a question.
    """
    if verb is None or passive:
        return _BE[tense][person], [verb.en[3]] if passive else []
    if tense == "perfect":
        return _HAVE[person], [verb.en[3]]
    if tense not in _DO:
        return {"future": "will"}.get(tense, tense), [verb.en[0]]
    if support:
        return _DO[tense][person], [verb.en[0]]
    return "", [verb.en[2] if tense == "past" else verb.en[1 if person == 0 else 0]]


def _complements(clause: Clause) -> List[str]:
    """Return everything after the verb."""
    words: List[str] = []
    if clause.quality is not None:
        words += _quality(clause)
    if clause.passive:
        words += ["by", *_phrase(clause.subject)]
    elif clause.object is not None:
        words += _phrase(clause.object)
    if clause.recipient is not None:
        words += ["to", *_phrase(clause.recipient)]
    if clause.goal is not None:
        words += ["on", *_phrase(clause.goal)]
    if clause.room is not None:
        words += ["in", *_phrase(clause.room)]
    return words + ([TIMES[clause.time][0]] if clause.time else [])


def _quality(clause: Clause) -> List[str]:
    if clause.than is None:
        return [clause.quality.en]
    comparative = clause.quality.en_comparative
    words = ["more", clause.quality.en] if comparative == "-" else [comparative]
    return [*words, "than", *_phrase(clause.than)]


def _tail(clause: Clause, subject: Optional[NounPhrase]) -> List[str]:
    """Return the clause without its subject."""
    person = _person(subject)
    auxiliary, rest = _verb(
        clause.verb, clause.tense, person, clause.passive, support=clause.negated
    )
    words = [auxiliary] * bool(auxiliary) + ["not"] * clause.negated
    return words + rest + _complements(clause)


def _statement(clause: Clause) -> List[str]:
    subject = clause.object if clause.passive else clause.subject
    return [*_phrase(subject), *_tail(clause, subject)]


def _question(kind: str, clause: Clause) -> List[str]:
    if kind == "who":
        return ["who", *_tail(clause, None)]
    subject = clause.object if clause.passive else clause.subject
    auxiliary, rest = _verb(
        clause.verb, clause.tense, _person(subject), clause.passive, support=True
    )
    words = [auxiliary, *_phrase(subject), *["not"] * clause.negated, *rest]
    return [kind] * (kind != "yes-no") + words + _complements(clause)


def realise(sentence: Sentence) -> str:
    """Return the English sentence, capitalised and punctuated."""
    if sentence.kind != "statement":
        words, end = _question(sentence.kind, sentence.main), "?"
    else:
        words, end = _statement(sentence.main), "."
    if sentence.subordinate is not None:
        subordinate = [sentence.conjunction, *_statement(sentence.subordinate)]
        if sentence.fronted:
            words = [*subordinate, ",", *words]
        else:
            words += subordinate
    text = " ".join(words).replace(" ,", ",")
    return text[0].upper() + text[1:] + end
