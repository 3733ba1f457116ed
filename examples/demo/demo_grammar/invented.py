"""An invented language (code ``qaa``, reserved by ISO 639-2 for private use).

Endings are glued on, the verb is last, the adjective follows its noun and the determiner follows
the adjective.  Nouns are living or lifeless; adjectives and determiners agree with them in class,
and the whole phrase carries its case once, on its last word.  A conjunction ends its clause, a
relative clause stands before its noun.
"""

from __future__ import annotations

import itertools
import random
from typing import Dict, List, Optional

from .lexicon import ADJECTIVES, NOUNS, VERBS
from .meaning import Clause, NounPhrase, Sentence

_CASES = {"nom": "", "acc": "n", "dat": "li", "in": "ro", "on": "ru", "onto": "su", "by": "ka"}
_CLASS = {"living": "o", "lifeless": "e"}
_DETERMINERS = {"the": "sa", "a": "ti", "this": "vu", "my": "mik", "our": "nok", "his": "tek"}
_PRONOUNS = {"I": "mi", "he": "ta", "she": "te", "we": "no", "they": "tom"}
_TENSES = {
    "present": "", "past": "pa", "perfect": "pafi", "future": "so", "can": "ku", "must": "ze",
}  # fmt: skip
_AGREEMENT = {"I": "mi", "we": "mo", "they": "to", "singular": "ta", "plural": "to"}
_TIMES = {"now": "zin", "today": "dal", "yesterday": "dapal", "tomorrow": "dasol"}
_QUESTIONS = {"who": "ki", "what": "kin", "where": "kiro", "when": "kida", "why": "kifo"}
_CONJUNCTIONS = {"that": "la", "because": "fo", "although": "befo", "when": "da"}
# the second noun shares the root of the first: the context has to tell them apart
_SAME_ROOT = {("key", 0): ("apple", 0), ("church", 0): ("window", 0)}


def _make_roots() -> Dict[object, str]:
    """Return a root of two syllables for every sense in the lexicon, always the same."""
    syllables = [c + v for c, v in itertools.product("bdfglmnprtvz", "aeiou")]
    roots = [a + b + end for a in syllables for b in syllables for end in "lrk"]
    random.Random(2018).shuffle(roots)
    senses = [*NOUNS, *ADJECTIVES, *VERBS]
    table = dict(zip(senses, roots))
    first = {noun.en[0]: noun for noun in reversed(NOUNS)}
    for (word, _), (other, _) in _SAME_ROOT.items():
        table[first[other]] = table[first[word]]
    return table


_ROOTS = _make_roots()


def _ending(phrase: NounPhrase) -> str:
    living = set(phrase.noun.classes) & {"person", "animal"}
    return _CLASS["living" if living else "lifeless"]


def _phrase(phrase: NounPhrase, case: str) -> List[str]:
    if phrase.pronoun:
        return [_PRONOUNS[phrase.pronoun] + _CASES[case]]
    ending = _ending(phrase)
    words = [*_relative(phrase.relative)] if phrase.relative is not None else []
    words.append(_ROOTS[phrase.noun] + "im" * phrase.plural)
    if phrase.adjective is not None:
        words.append(_ROOTS[phrase.adjective] + ending)
    words.append(_DETERMINERS[phrase.determiner] + ending)
    words[-1] += _CASES[case]
    return words


def _relative(clause: Clause) -> List[str]:
    return [*_arguments(clause), _verb(clause, None if clause.subject is None else "") + "ri"]


def _verb(clause: Clause, agreement: Optional[str] = "") -> str:
    """Return root, passive, negation, tense and agreement with the subject (None: no agreement)."""
    stem = "e" if clause.verb is None else _ROOTS[clause.verb]
    stem += "wa" * clause.passive + "nu" * clause.negated + _TENSES[clause.tense]
    if agreement is None:
        return stem
    return stem + _AGREEMENT[_number(clause.object if clause.passive else clause.subject)]


def _number(subject: Optional[NounPhrase]) -> str:
    if subject is None or subject.pronoun in ("he", "she"):
        return "singular"
    return subject.pronoun or ("plural" if subject.plural else "singular")


def _arguments(clause: Clause) -> List[str]:
    """Return everything before the verb: time, subject, places, recipient, object."""
    words = [_TIMES[clause.time]] if clause.time else []
    if clause.passive:
        words += [*_phrase(clause.object, "nom"), *_phrase(clause.subject, "by")]
    elif clause.subject is not None:
        words += _phrase(clause.subject, "nom")
    if clause.room is not None:
        words += _phrase(clause.room, "in")
    if clause.goal is not None:
        words += _phrase(clause.goal, "onto" if clause.verb.frame == "put" else "on")
    if clause.recipient is not None:
        words += _phrase(clause.recipient, "dat")
    if clause.object is not None and not clause.passive:
        words += _phrase(clause.object, "dat" if clause.verb.frame == "dat" else "acc")
    if clause.quality is not None:
        words += _phrase(clause.than, "by") if clause.than is not None else []
        words.append(_ROOTS[clause.quality] + _ending(clause.subject))
    return words


def _clause(clause: Clause) -> List[str]:
    return [*_arguments(clause), _verb(clause)]


def realise(sentence: Sentence) -> str:
    """Return the sentence in the invented language, punctuated, without capitals."""
    words = _clause(sentence.main)
    if sentence.kind != "statement":
        question = _QUESTIONS.get(sentence.kind)
        return " ".join([question, *words] if question else [*words, "ke"]) + "?"
    if sentence.subordinate is None:
        return " ".join(words) + "."
    subordinate = [*_clause(sentence.subordinate), _CONJUNCTIONS[sentence.conjunction]]
    both = [*subordinate, ",", *words] if sentence.fronted else [*words, ",", *subordinate]
    return " ".join(both).replace(" ,", ",") + "."
