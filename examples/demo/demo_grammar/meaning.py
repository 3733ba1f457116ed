"""Language-independent sentences and the random generator that draws them.

A sentence is a tree of the three classes below; each language module reads it and chooses word
forms and word order by itself.  What the generator promises to them: an ambiguous word is only
used where its context decides (see ``lexicon``), and an English past that looks like the present
("they put") always comes with "yesterday".
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Optional, Sequence

from .lexicon import (
    AMBIGUOUS_NOUNS,
    AMBIGUOUS_VERBS,
    NOUNS,
    TIMES,
    VERBS,
    Adjective,
    Noun,
    Verb,
    adjectives_of,
    nouns_of,
)

PRONOUNS = ("I", "he", "she", "we", "they")
DETERMINERS = ("the", "the", "the", "a", "a", "this", "my", "our", "his")
TENSES = ("present", "present", "past", "past", "perfect", "future", "can", "must")


@dataclass(frozen=True)
class NounPhrase:
    """A noun with determiner, adjectives and a relative clause, or a pronoun (``noun`` None)."""

    noun: Optional[Noun] = None
    plural: bool = False
    determiner: str = "the"
    adjective: Optional[Adjective] = None
    relative: Optional["Clause"] = None
    pronoun: str = ""


@dataclass(frozen=True)
class Clause:
    """A verb with its arguments.

    ``subject`` is None in a question for the subject and in a subject relative clause, ``object``
    is None without object, in a question for it and in an object relative clause; ``missing``
    names the gap ("subject", "object" or "").  ``verb`` None is the copula with ``quality`` and
    ``than``.  ``goal`` is where something is put or where somebody sits, ``room`` where it
    happens.
    """

    verb: Optional[Verb]
    subject: Optional[NounPhrase]
    tense: str
    object: Optional[NounPhrase] = None
    recipient: Optional[NounPhrase] = None
    goal: Optional[NounPhrase] = None
    room: Optional[NounPhrase] = None
    time: str = ""
    negated: bool = False
    passive: bool = False
    missing: str = ""
    quality: Optional[Adjective] = None
    than: Optional[NounPhrase] = None


@dataclass(frozen=True)
class Sentence:
    """A main clause and, joined by a conjunction, a subordinate one.

    ``kind`` is "statement", "yes-no" or a question word: "who", "what", "where", "when", "why".
    ``conjunction`` is "", "that", "because", "although" or "when"; ``fronted`` puts the
    subordinate clause first.
    """

    kind: str
    main: Clause
    conjunction: str = ""
    subordinate: Optional[Clause] = None
    fronted: bool = False


def _phrase(
    rng: random.Random, classes: Sequence[str], relative: float = 0.0, pronoun: float = 0.0
) -> NounPhrase:
    """Return a noun phrase of the classes; ``relative`` and ``pronoun`` are probabilities."""
    if rng.random() < pronoun:
        return NounPhrase(pronoun=rng.choice(PRONOUNS))
    noun = rng.choice(nouns_of(tuple(classes)))
    adjectives = adjectives_of(noun)
    return NounPhrase(
        noun=noun,
        plural=rng.random() < 0.3,
        determiner=rng.choice(DETERMINERS),
        adjective=rng.choice(adjectives) if adjectives and rng.random() < 0.35 else None,
        relative=_relative(rng, noun) if rng.random() < relative else None,
    )


def _relative(rng: random.Random, noun: Noun) -> Clause:
    """Return a relative clause whose objects are things, so that case never has to be guessed."""
    person = "person" in noun.classes
    verbs = [
        verb
        for verb in VERBS
        if verb.frame in (("acc", "none") if person else ("acc",))
        and not set(verb.objects) & {"person", "animal"}
        and ("person" in verb.subjects if person else set(verb.objects) & set(noun.classes))
    ]
    if not verbs:
        verbs = [verb for verb in VERBS if verb.frame == "acc" and verb.en[0] == "see"]
    verb = rng.choice(verbs)
    tense = rng.choice(("present", "perfect"))
    if person:
        phrase = _phrase(rng, verb.objects) if verb.frame == "acc" else None
        return Clause(verb, None, tense, object=phrase, missing="subject")
    return Clause(verb, _phrase(rng, ("person",), pronoun=0.3), tense, missing="object")


def _clause(rng: random.Random, relative: float = 0.1, embedded: bool = False) -> Clause:
    """Return a complete clause; ``embedded`` keeps it short enough to stand in another one."""
    if rng.random() < 0.12:
        return _copula(rng)
    verb = rng.choice([verb for verb in VERBS if verb.frame != "that"])
    subject = _phrase(rng, verb.subjects, relative, pronoun=0.3)
    objects = verb.objects
    relative = 0.0 if subject.relative else relative
    clause = Clause(
        verb,
        subject,
        rng.choice(TENSES),
        object=_phrase(rng, objects, relative) if objects else None,
        recipient=_phrase(rng, ("person",)) if verb.frame == "give" else None,
        goal=_phrase(rng, ("surface",)) if verb.frame in ("put", "sit") else None,
        negated=rng.random() < 0.15,
        passive=verb.frame == "acc" and not _animate(objects) and rng.random() < 0.15,
    )
    if clause.passive:
        agent = _phrase(rng, ("person",))
        clause = replace(clause, subject=agent, tense=rng.choice(("present", "past")))
    if clause.goal is None and not clause.negated and not embedded and rng.random() < 0.2:
        clause = replace(clause, room=_phrase(rng, ("room",)))
    return _with_time(rng, clause, 0.0 if embedded else 0.3)


def _animate(classes: Sequence[str]) -> bool:
    return bool(set(classes) & {"person", "animal"})


def _with_time(rng: random.Random, clause: Clause, probability: float) -> Clause:
    """Add an adverb that fits the tense; always where the English past looks like the present."""
    silent = clause.verb is not None and clause.verb.en[0] == clause.verb.en[2]
    if silent and clause.tense == "past":
        return replace(clause, time="yesterday")
    fitting = [key for key, (_, _, tenses) in TIMES.items() if clause.tense in tenses]
    if fitting and rng.random() < probability:
        return replace(clause, time=rng.choice(fitting))
    return clause


def _copula(rng: random.Random) -> Clause:
    """Return a comparison or a quality; its nouns are unambiguous, as nothing resolves them."""
    plain = [noun for noun in NOUNS if adjectives_of(noun) and noun not in AMBIGUOUS_NOUNS]
    noun = rng.choice(plain)
    subject = NounPhrase(noun, rng.random() < 0.3, rng.choice(DETERMINERS))
    than = None
    if rng.random() < 0.5:
        alike = [other for other in plain if other.classes[0] == noun.classes[0]]
        than = NounPhrase(rng.choice(alike), rng.random() < 0.3, rng.choice(DETERMINERS))
    return Clause(
        verb=None,
        subject=subject,
        tense=rng.choice(("present", "past")),
        quality=rng.choice(adjectives_of(noun)),
        than=than,
        negated=rng.random() < 0.15,
    )


def _question(rng: random.Random) -> Sentence:
    kind = rng.choice(("yes-no", "yes-no", "who", "who", "what", "where", "when", "why"))
    clause = _clause(rng, relative=0.0)
    if kind == "yes-no":
        return Sentence(kind, clause)
    while clause.verb is None or clause.passive or not _askable(kind, clause):
        clause = _clause(rng, relative=0.0)
    clause = replace(clause, negated=False)
    if kind == "who":
        return Sentence(kind, replace(clause, subject=None, missing="subject"))
    if kind == "what":
        return Sentence(kind, replace(clause, object=None, missing="object"))
    if kind == "where":
        return Sentence(kind, replace(clause, room=None))
    if kind == "when":
        return Sentence(kind, replace(clause, time=""))
    return Sentence(kind, clause)


def _askable(kind: str, clause: Clause) -> bool:
    """True if the question word fits and removes nothing that decides a translation."""
    silent = clause.verb.en[0] == clause.verb.en[2] and clause.tense == "past"
    if kind == "what":
        plain = clause.verb not in AMBIGUOUS_VERBS and not _animate(clause.verb.objects)
        return clause.verb.frame == "acc" and plain
    if kind == "where":
        return clause.goal is None
    return kind != "when" or not silent


def sample_sentence(rng: random.Random) -> Sentence:
    """Draw a sentence.

    :param rng: the only source of randomness
    """
    draw = rng.random()
    if draw < 0.2:
        return _question(rng)
    if draw < 0.3:
        verb = rng.choice([verb for verb in VERBS if verb.frame == "that"])
        main = Clause(verb, _phrase(rng, ("person",), pronoun=0.5), rng.choice(("present", "past")))
        return Sentence("statement", main, "that", _clause(rng, 0.0, embedded=True))
    if draw < 0.45:
        conjunction = rng.choice(("because", "although", "when"))
        main = _clause(rng, 0.0, embedded=True)
        subordinate = _clause(rng, 0.0, embedded=True)
        if conjunction == "when":
            tense = rng.choice(("present", "past"))
            main, subordinate = (
                _with_time(rng, replace(part, tense=tense, time=""), 0.0)
                for part in (main, subordinate)
            )
        return Sentence("statement", main, conjunction, subordinate, rng.random() < 0.4)
    return Sentence("statement", _clause(rng))
