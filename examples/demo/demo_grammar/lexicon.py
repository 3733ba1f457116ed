"""The words of the demo grammar, as tables.

Every line of a table is one *sense*.  A word that occurs in two lines is ambiguous; its senses
belong to different classes, and a sentence only ever uses a noun where a verb, a preposition or
an adjective asks for its class, so that the context decides the translation:

=========  =======================  ==================================================
word       translations             decided by
=========  =======================  ==================================================
bank       Bank, Ufer               visit / run it (money), reach it (river)
letter     Brief, Buchstabe         read or put it, learn it
know       kennen, wissen           an object follows, a clause follows
call       anrufen, rufen           a person, an animal
put        stellen, legen           the shape of the thing
run        laufen, leiten           no object, an object
light      hell, leicht             a room, a thing that is carried
hard       hart, schwer             food, a task
Bank       bank, bench              class
Schloss    castle, lock             class
Leiter     leader, ladder           class, and gender in the singular
Decke      blanket, ceiling         class
Gericht    dish, court              class
tragen     carry, wear              the object
besuchen   visit, attend            the object
leicht     light, easy              a thing that is carried, a task
schwer     heavy, hard              a thing that is carried, a task
=========  =======================  ==================================================
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Dict, FrozenSet, List, Sequence, Tuple, TypeVar

# classes | English singular, plural | German gender, singular, plural, weak declension
_NOUNS = """
person             | man men             | m Mann Männer
person             | woman women         | f Frau Frauen
person             | child children      | n Kind Kinder
person             | boy boys            | m Junge Jungen weak
person             | girl girls          | n Mädchen Mädchen
person             | teacher teachers    | f Lehrerin Lehrerinnen
person             | student students    | m Student Studenten weak
person             | doctor doctors      | m Arzt Ärzte
person             | friend friends      | f Freundin Freundinnen
person             | leader leaders      | m Leiter Leiter
animal             | dog dogs            | m Hund Hunde
animal             | cat cats            | f Katze Katzen
animal             | horse horses        | n Pferd Pferde
animal             | lion lions          | m Löwe Löwen weak
building           | castle castles      | n Schloss Schlösser
building           | museum museums      | n Museum Museen
building           | church churches     | f Kirche Kirchen
building           | court courts        | n Gericht Gerichte
building,firm      | bank banks          | f Bank Banken
firm               | company companies   | f Firma Firmen
firm               | hotel hotels        | n Hotel Hotels
course             | school schools      | f Schule Schulen
course             | course courses      | m Kurs Kurse
landscape          | bank banks          | n Ufer Ufer
landscape          | river rivers        | m Fluss Flüsse
landscape          | mountain mountains  | m Berg Berge
landscape          | island islands      | f Insel Inseln
room               | kitchen kitchens    | f Küche Küchen
room               | room rooms          | n Zimmer Zimmer
room               | garden gardens      | m Garten Gärten
openable           | lock locks          | n Schloss Schlösser
openable,paintable | door doors          | f Tür Türen
openable,paintable | window windows      | n Fenster Fenster
paintable          | ceiling ceilings    | f Decke Decken
paintable          | wall walls          | f Wand Wände
openable,carryable | box boxes           | f Kiste Kisten
openable,carryable | suitcase suitcases  | m Koffer Koffer
standing,carryable | ladder ladders      | f Leiter Leitern
standing,carryable | lamp lamps          | f Lampe Lampen
standing           | bottle bottles      | f Flasche Flaschen
standing           | glass glasses       | n Glas Gläser
lying,readable     | letter letters      | m Brief Briefe
lying,readable     | book books          | n Buch Bücher
lying,readable     | newspaper newspapers | f Zeitung Zeitungen
lying              | blanket blankets    | f Decke Decken
lying              | key keys            | m Schlüssel Schlüssel
surface            | bench benches       | f Bank Bänke
surface            | table tables        | m Tisch Tische
surface            | bed beds            | n Bett Betten
clothes            | coat coats          | m Mantel Mäntel
clothes            | shirt shirts        | n Hemd Hemden
clothes            | cap caps            | f Mütze Mützen
food               | dish dishes         | n Gericht Gerichte
food               | apple apples        | m Apfel Äpfel
food               | soup soups          | f Suppe Suppen
symbol             | letter letters      | m Buchstabe Buchstaben weak
symbol             | word words          | n Wort Wörter
symbol             | number numbers      | f Zahl Zahlen
task               | task tasks          | f Aufgabe Aufgaben
task               | riddle riddles      | n Rätsel Rätsel
"""

# classes it may describe | English word, comparative | German word, stem before an ending,
# comparative
_ADJECTIVES = """
person,animal                       | old older          | alt alt älter
person,animal                       | young younger      | jung jung jünger
person,animal                       | strong stronger    | stark stark stärker
animal,building,landscape,firm      | big bigger         | groß groß größer
building,firm,surface,clothes       | new newer          | neu neu neuer
building,landscape,clothes,readable | beautiful -        | schön schön schöner
room                                | light lighter      | hell hell heller
carryable                           | light lighter      | leicht leicht leichter
room,paintable                      | dark darker        | dunkel dunkl dunkler
carryable                           | heavy heavier      | schwer schwer schwerer
task                                | hard harder        | schwer schwer schwerer
food                                | hard harder        | hart hart härter
task                                | easy easier        | leicht leicht leichter
standing,lying,symbol,course        | small smaller      | klein klein kleiner
openable,surface,paintable,clothes  | red redder         | rot rot röter
food,symbol,course                  | good better        | gut gut besser
"""

# frame | subject classes | object classes | English base, 3rd person, past, participle
#       | German infinitive, 3rd person, past, participle, perfect with h(aben) or s(ein), prefix
# frames: none, acc / dat (case of the German object), give (recipient and object),
#         put (object and goal), sit (seat), that (clause)
_VERBS = """
none | person,animal | - | sleep sleeps slept slept | schlafen schläft schlief geschlafen h -
none | person,animal | - | run runs ran run | laufen läuft lief gelaufen s -
none | person | - | work works worked worked | arbeiten arbeitet arbeitete gearbeitet h -
none | person | - | laugh laughs laughed laughed | lachen lacht lachte gelacht h -
none | person | - | arrive arrives arrived arrived | kommen kommt kam angekommen s an
acc | person,animal | person,animal | see sees saw seen | sehen sieht sah gesehen h -
acc | person | person,animal | like likes liked liked | mögen mag mochte gemocht h -
acc | person | person | know knows knew known | kennen kennt kannte gekannt h -
acc | person | person | call calls called called | rufen ruft rief angerufen h an
acc | person | animal | call calls called called | rufen ruft rief gerufen h -
dat | person | person,animal | help helps helped helped | helfen hilft half geholfen h -
dat | person,animal | person | follow follows followed followed | folgen folgt folgte gefolgt s -
acc | person | building | visit visits visited visited | besuchen besucht besuchte besucht h -
acc | person | course | attend attends attended attended | besuchen besucht besuchte besucht h -
acc | person | firm | run runs ran run | leiten leitet leitete geleitet h -
acc | person | landscape | reach reaches reached reached | erreichen erreicht erreichte erreicht h -
acc | person | openable | open opens opened opened | machen macht machte aufgemacht h auf
acc | person | paintable | paint paints painted painted | streichen streicht strich gestrichen h -
acc | person | carryable | carry carries carried carried | tragen trägt trug getragen h -
acc | person | clothes | wear wears wore worn | tragen trägt trug getragen h -
acc | person | readable | read reads read read | lesen liest las gelesen h -
acc | person,animal | food | eat eats ate eaten | essen isst aß gegessen h -
acc | person | symbol | learn learns learned learned | lernen lernt lernte gelernt h -
acc | person | task | solve solves solved solved | lösen löst löste gelöst h -
give | person | readable,food,clothes | give gives gave given | geben gibt gab gegeben h -
give | person | lying,carryable | show shows showed shown | zeigen zeigt zeigte gezeigt h -
put | person | standing | put puts put put | stellen stellt stellte gestellt h -
put | person | lying | put puts put put | legen legt legte gelegt h -
sit | person,animal | - | sit sits sat sat | sitzen sitzt saß gesessen h -
that | person | - | know knows knew known | wissen weiß wusste gewusst h -
that | person | - | believe believes believed believed | glauben glaubt glaubte geglaubt h -
"""

# present | past | future: the tenses an adverb goes with
TIMES: Dict[str, Tuple[str, str, Tuple[str, ...]]] = {
    "now": ("now", "jetzt", ("present",)),
    "today": ("today", "heute", ("present", "must", "can")),
    "yesterday": ("yesterday", "gestern", ("past",)),
    "tomorrow": ("tomorrow", "morgen", ("future", "must")),
}


@dataclass(frozen=True)
class Noun:
    """One sense of a noun: its classes, English forms, German gender and forms."""

    classes: Tuple[str, ...]
    en: Tuple[str, str]
    gender: str
    de: Tuple[str, str]
    weak: bool


@dataclass(frozen=True)
class Adjective:
    """One sense of an adjective; ``en_comparative`` is "-" where English says "more"."""

    classes: Tuple[str, ...]
    en: str
    en_comparative: str
    de: str
    de_stem: str
    de_comparative: str


@dataclass(frozen=True)
class Verb:
    """One sense of a verb.

    ``en`` is (base, third person, past, participle), ``de`` is (infinitive, third person, past,
    participle); ``prefix`` is the separable prefix or "".  ``frame`` is explained above the table.
    """

    frame: str
    subjects: Tuple[str, ...]
    objects: Tuple[str, ...]
    en: Tuple[str, str, str, str]
    de: Tuple[str, str, str, str]
    auxiliary: str
    prefix: str


_Sense = TypeVar("_Sense", Noun, Verb)


def _rows(table: str) -> List[List[List[str]]]:
    """Return the lines of a table, each a list of cells, each a list of words."""
    lines = [line for line in table.strip().splitlines() if line]
    return [[cell.split() for cell in line.split("|")] for line in lines]


def _classes(cell: List[str]) -> Tuple[str, ...]:
    return () if cell == ["-"] else tuple(cell[0].split(","))


def _read_nouns() -> List[Noun]:
    return [
        Noun(_classes(kinds), (en[0], en[1]), de[0], (de[1], de[2]), de[-1] == "weak")
        for kinds, en, de in _rows(_NOUNS)
    ]


def _read_adjectives() -> List[Adjective]:
    return [Adjective(_classes(kinds), *en, *de) for kinds, en, de in _rows(_ADJECTIVES)]


def _read_verbs() -> List[Verb]:
    verbs = []
    for frame, subjects, objects, en, de in _rows(_VERBS):
        base, third, past, participle = (form.replace("_", " ") for form in en)
        prefix = "" if de[5] == "-" else de[5]
        verbs.append(
            Verb(
                frame[0],
                _classes(subjects),
                _classes(objects),
                (base, third, past, participle),
                (de[0], de[1], de[2], de[3]),
                {"h": "haben", "s": "sein"}[de[4]],
                prefix,
            )
        )
    return verbs


NOUNS = _read_nouns()
ADJECTIVES = _read_adjectives()
VERBS = _read_verbs()


def _ambiguous(senses: Sequence[_Sense]) -> FrozenSet[_Sense]:
    """Return the senses that share their English or German citation form with another one."""
    english = Counter(sense.en[0] for sense in senses)
    german = Counter(sense.de[0] for sense in senses)
    return frozenset(s for s in senses if english[s.en[0]] > 1 or german[s.de[0]] > 1)


AMBIGUOUS_NOUNS = _ambiguous(NOUNS)
AMBIGUOUS_VERBS = _ambiguous(VERBS)


def nouns_of(classes: Tuple[str, ...]) -> List[Noun]:
    """Return the nouns that belong to at least one of the classes."""
    return [noun for noun in NOUNS if set(noun.classes) & set(classes)]


def adjectives_of(noun: Noun) -> List[Adjective]:
    """Return the adjectives that may describe the noun."""
    return [word for word in ADJECTIVES if set(word.classes) & set(noun.classes)]
