"""German: verb second, verb-final subordinate clauses, gender, case and number agreement."""

from __future__ import annotations

from typing import List, Optional, Tuple

from .lexicon import TIMES, Verb
from .meaning import Clause, NounPhrase, Sentence

# columns: masculine, feminine, neuter, plural
_COLUMNS = {"m": 0, "f": 1, "n": 2, "pl": 3}
_THE = {"nom": "der die das die", "acc": "den die das die", "dat": "dem der dem den"}
_EIN = {"nom": "- e - e", "acc": "en e - e", "dat": "em er em en"}
_DIESER = {"nom": "er e es e", "acc": "en e es e", "dat": "em er em en"}
_WEAK = {"nom": "e e e en", "acc": "en e e en", "dat": "en en en en"}
_MIXED = {"nom": "er e es en", "acc": "en e es en", "dat": "en en en en"}
_STRONG_PLURAL = {"nom": "e", "acc": "e", "dat": "en"}
_POSSESSIVES = {"a": "ein", "no": "kein", "my": "mein", "our": "unser", "his": "sein"}
_PRONOUNS = {"I": "ich", "he": "er", "she": "sie", "we": "wir", "they": "sie"}
_CONJUNCTIONS = {"that": "dass", "because": "weil", "although": "obwohl"}
_QUESTIONS = {"who": "wer", "what": "was", "where": "wo", "when": "wann", "why": "warum"}
_CONTRACTIONS = {("in", "dem"): "im", ("von", "dem"): "vom"}
# first person singular, third person singular, plural; present and past
_IRREGULAR = {
    "sein": (("bin", "ist", "sind"), ("war", "war", "waren")),
    "haben": (("habe", "hat", "haben"), ("hatte", "hatte", "hatten")),
    "werden": (("werde", "wird", "werden"), ("wurde", "wurde", "wurden")),
    "können": (("kann", "kann", "können"), ("konnte", "konnte", "konnten")),
    "müssen": (("muss", "muss", "müssen"), ("musste", "musste", "mussten")),
    "mögen": (("mag", "mag", "mögen"), ("mochte", "mochte", "mochten")),
    "wissen": (("weiß", "weiß", "wissen"), ("wusste", "wusste", "wussten")),
}
_AUXILIARIES = {"future": "werden", "can": "können", "must": "müssen"}


def _cell(table: dict, case: str, column: str) -> str:
    ending = table[case].split()[_COLUMNS[column]]
    return "" if ending == "-" else ending


def _column(phrase: NounPhrase) -> str:
    return "pl" if phrase.plural else phrase.noun.gender


def _noun(phrase: NounPhrase, case: str) -> str:
    word = phrase.noun.de[phrase.plural]
    if phrase.plural:
        return word + "n" if case == "dat" and word[-1] not in "ns" else word
    if phrase.noun.weak and case != "nom":
        return word + ("n" if word.endswith("e") else "en")
    return word


def _determiner(determiner: str, case: str, column: str) -> Tuple[str, str]:
    """Return the determiner and the ending of an adjective that follows it."""
    if determiner == "a" and column == "pl":
        return "", _STRONG_PLURAL[case]
    if determiner in _POSSESSIVES:
        word = _POSSESSIVES[determiner] + _cell(_EIN, case, column)
        return word, _cell(_MIXED, case, column)
    if determiner == "this":
        return "dies" + _cell(_DIESER, case, column), _cell(_WEAK, case, column)
    return _cell(_THE, case, column), _cell(_WEAK, case, column)


def _phrase(phrase: NounPhrase, case: str, preposition: str = "", none: bool = False) -> List[str]:
    """Return the words of a noun phrase; ``none`` turns an indefinite one into "kein"."""
    if phrase.pronoun:
        return [_PRONOUNS[phrase.pronoun]]
    column = _column(phrase)
    determiner, ending = _determiner("no" if none else phrase.determiner, case, column)
    words = [determiner] if determiner else []
    if phrase.adjective is not None:
        words.append(phrase.adjective.de_stem + ending)
    words.append(_noun(phrase, case))
    if preposition:
        words.insert(0, preposition)
        if tuple(words[:2]) in _CONTRACTIONS:
            words[:2] = [_CONTRACTIONS[words[0], words[1]]]
    if phrase.relative is not None:
        words += [",", *_relative(phrase, phrase.relative), ","]
    return words


def _relative(head: NounPhrase, clause: Clause) -> List[str]:
    case = "nom" if clause.missing == "subject" else "acc"
    subject = head if clause.missing == "subject" else clause.subject
    pronoun = _cell(_THE, case, _column(head))
    middle = _phrase(clause.subject, "nom") if clause.subject is not None else []
    return [pronoun, *middle, *_verb_final(clause, subject)]


def _finite(infinitive: str, forms: Optional[Verb], tense: str, person: int) -> str:
    """Return a finite form; person 0 is "ich", 1 is the third person singular, 2 the plural."""
    if infinitive in _IRREGULAR:
        return _IRREGULAR[infinitive][tense == "past"][person]
    _, third, past, _ = forms.de
    if tense == "past":
        return past + ("n" if past.endswith("e") else "en") if person == 2 else past
    return (infinitive[:-1], third, infinitive)[person]


def _person(subject: Optional[NounPhrase]) -> int:
    if subject is None or subject.pronoun in ("he", "she"):
        return 1
    if subject.pronoun:
        return 0 if subject.pronoun == "I" else 2
    return 2 if subject.plural else 1


def _verb(clause: Clause, person: int) -> Tuple[str, List[str], str]:
    """Return the finite verb, what closes the clause, and the separated prefix."""
    verb, tense = clause.verb, clause.tense
    if verb is None:
        return _finite("sein", None, tense, person), [], ""
    if clause.passive:
        return _finite("werden", None, tense, person), [verb.de[3]], ""
    if tense == "perfect":
        return _finite(verb.auxiliary, None, "present", person), [verb.de[3]], ""
    if tense in _AUXILIARIES:
        auxiliary = _finite(_AUXILIARIES[tense], None, "present", person)
        return auxiliary, [verb.prefix + verb.de[0]], ""
    return _finite(verb.de[0], verb, tense, person), [], verb.prefix


def _middle(clause: Clause) -> List[str]:
    """Return what stands between subject and closing verb: recipient, object, negation, places."""
    words: List[str] = []
    if clause.recipient is not None:
        words += _phrase(clause.recipient, "dat")
    indefinite = False
    if clause.object is not None and not clause.passive:
        indefinite = clause.negated and clause.object.determiner == "a"
        case = "dat" if clause.verb.frame == "dat" else "acc"
        words += _phrase(clause.object, case, none=indefinite)
    if clause.negated and not indefinite:
        words.append("nicht")
    if clause.passive:
        words += _phrase(clause.subject, "dat", "von")
    if clause.goal is not None:
        words += _phrase(clause.goal, "acc" if clause.verb.frame == "put" else "dat", "auf")
    if clause.room is not None:
        words += _phrase(clause.room, "dat", "in")
    if clause.quality is not None:
        words.append(clause.quality.de_comparative if clause.than else clause.quality.de)
        words += ["als", *_phrase(clause.than, "nom")] if clause.than else []
    return words


def _grammatical_subject(clause: Clause) -> Optional[NounPhrase]:
    return clause.object if clause.passive else clause.subject


def _verb_final(clause: Clause, subject: Optional[NounPhrase]) -> List[str]:
    """Return everything after the subject, with the finite verb last."""
    finite, closing, prefix = _verb(clause, _person(subject))
    time = [TIMES[clause.time][1]] if clause.time else []
    if clause.quality is not None and clause.than is not None:
        before, after = _split_comparison(clause)
        return [*time, *before, finite, *after]
    return [*time, *_middle(clause), *closing, prefix + finite]


def _split_comparison(clause: Clause) -> Tuple[List[str], List[str]]:
    """Return the words before the final verb ("nicht älter") and after it ("als der Hund")."""
    words = _middle(clause)
    cut = words.index("als")
    return words[:cut], words[cut:]


def _main(clause: Clause, first: Optional[List[str]] = None) -> List[str]:
    """Return a verb-second clause; ``first`` ([] in a yes-no question) replaces the subject."""
    subject = _grammatical_subject(clause)
    nominative = _phrase(subject, "nom") if subject is not None else []
    finite, closing, prefix = _verb(clause, _person(subject))
    time = [TIMES[clause.time][1]] if clause.time else []
    if first is None and time:
        first, time = time, []
    if first is None:
        first, nominative = nominative, []
    end = [prefix] if prefix else []
    return [*first, finite, *nominative, *time, *_middle(clause), *closing, *end]


def _join(words: List[str], end: str) -> str:
    """Join the words, dropping doubled commas and a comma before the end."""
    joined: List[str] = []
    for word in words:
        if word != "," or joined[-1] != ",":
            joined.append(word)
    while joined[-1] == ",":
        joined.pop()
    text = " ".join(joined).replace(" ,", ",")
    return text[0].upper() + text[1:] + end


def realise(sentence: Sentence) -> str:
    """Return the German sentence, capitalised and punctuated."""
    main, other = sentence.main, sentence.subordinate
    if sentence.kind != "statement":
        question = _QUESTIONS.get(sentence.kind)
        return _join(_main(main, [question] if question else []), "?")
    if other is None:
        return _join(_main(main), ".")
    conjunction = _CONJUNCTIONS.get(sentence.conjunction)
    if conjunction is None:
        conjunction = "als" if other.tense == "past" else "wenn"
    subject = _grammatical_subject(other)
    subordinate = [conjunction, *_phrase(subject, "nom"), *_verb_final(other, subject)]
    if sentence.fronted:
        return _join(_main(main, [*subordinate, ","]), ".")
    return _join([*_main(main), ",", *subordinate], ".")
