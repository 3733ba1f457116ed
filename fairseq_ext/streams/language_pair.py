"""A direction of translation. Tasks, logs and checkpoints name it by its text, "de-en".

A stream is what is trained on a direction: "de-en", its parallel data, or with a label "de-en@bt",
synthetic pairs of the same direction.
"""

from typing import Iterable, List, NamedTuple, Tuple

LABEL = "@"  # between the direction and the label of a stream
# the label of pairs that are made in training, of --monolingual; others name folders of data
MONO = "mono"


class LanguagePair(NamedTuple):
    """A source and a target language, "de-en"; several sources at once are "de+fr-en".

    Attributes:
        source: the source language; of several, all of them with "+" between them.
        target: the target language.
    """

    source: str
    target: str

    @classmethod
    def parse(cls, text: str) -> "LanguagePair":
        """Return the pair that ``text`` names; ValueError if it is not SOURCE-TARGET."""
        if not isinstance(text, str):  # of callers in Python
            raise TypeError(f"direction {text!r}: allowed: a str, such as 'de-en'")
        # at the first dash: a second one would be in a language's name, and the split ambiguous
        source, _, target = text.partition("-")
        if not source or not target or "-" in target:
            raise ValueError(
                f"{text!r}: not of the form SOURCE-TARGET, with languages without a dash in their "
                "names"
            )
        return cls(source, target)

    @property
    def sources(self) -> Tuple[str, ...]:
        """Return the source languages, each on its own."""
        return tuple(self.source.split("+"))

    @property
    def reverse(self) -> "LanguagePair":
        """Return the other direction."""
        return LanguagePair(self.target, self.source)

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"


def pair_of(stream: str) -> str:
    """Return the direction of a stream: "de-en" of "de-en" and of "de-en@bt"."""
    return stream.partition(LABEL)[0]


def label_of(stream: str) -> str:
    """Return the label of a stream: "bt" of "de-en@bt", "" of "de-en"."""
    return stream.partition(LABEL)[2]


def source_of(pair: str) -> str:
    """Return the source language: "de-en" -> "de"; of several sources "de+fr"."""
    return LanguagePair.parse(pair).source


def target_of(pair: str) -> str:
    """Return the target language: "de-en" -> "en"."""
    return LanguagePair.parse(pair).target


def reverse_of(pair: str) -> str:
    """Return the other direction: "de-en" -> "en-de"."""
    return str(LanguagePair.parse(pair).reverse)


def sides(pairs: Iterable[str]) -> Tuple[List[str], List[str]]:
    """Return source languages and target languages, each once, in the order of the pairs."""
    parsed = [LanguagePair.parse(pair) for pair in pairs]
    sources = dict.fromkeys(pair.source for pair in parsed)
    targets = dict.fromkeys(pair.target for pair in parsed)
    return list(sources), list(targets)


def languages(pairs: Iterable[str]) -> List[str]:
    """Return all languages of the pairs, each once, in their order."""
    # a pair is (source, target)
    return list(dict.fromkeys(lang for pair in pairs for lang in LanguagePair.parse(pair)))
