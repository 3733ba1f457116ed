"""Words of tokens, and L_t of their occurrences."""

import math
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from ...compat.generation.joined_texts import bytes_as_text

UNITS = ("token", "subword_nmt", "sentencepiece", "letter", "characters")
# the sign of a blank: at the beginning of a word in sentencepiece, by itself in characters
BLANK = "\u2581"
# symbols that separate words and belong to none
SEPARATORS = {"letter": "|", "characters": BLANK}


def has_mark(symbols: Iterable[str], unit: str) -> bool:
    """True if the symbols say where words end; a token always does, and subword-nmt's too."""
    if unit == "sentencepiece":
        return any(symbol.startswith(BLANK) for symbol in symbols)
    return unit not in SEPARATORS or SEPARATORS[unit] in symbols


def name_of_mark(unit: str) -> str:
    """Return what `has_mark` looks for, for messages."""
    if unit == "sentencepiece":
        return "symbol that begins with \u2581 (U+2581)"
    return f"symbol {SEPARATORS[unit]} (U+{ord(SEPARATORS[unit]):04X})"


class Token(NamedTuple):
    """One token that both networks predict. penalty: L_t. nll: -log P_f, in nats."""

    sentence: int
    position: int
    symbol: str
    penalty: float
    nll: float


Sentences = Dict[int, List[Token]]


def words_of(symbols: List[str], unit: str) -> List[Tuple[str, List[int]]]:
    """Return [(word, its places)] of a sentence; what only separates words is in none."""
    if unit == "token":
        return [(symbol, [place]) for place, symbol in enumerate(symbols)]
    words: List[Tuple[List[str], List[int]]] = []
    begin = True
    for place, symbol in enumerate(symbols):
        # a separator ends the word before it and is in none
        if symbol == SEPARATORS.get(unit):
            begin = True
            continue
        # sentencepiece: the mark and the first piece are one symbol
        if unit == "sentencepiece" and symbol.startswith(BLANK):
            begin, symbol = True, symbol[1:]
        # subword-nmt: "@@" says that the word goes on
        joined = unit == "subword_nmt" and symbol.endswith("@@")
        text = symbol[:-2] if joined else symbol
        if begin:
            words.append(([], []))
        words[-1][0].append(text)
        words[-1][1].append(place)
        # where symbols of a word are separated or marked, only the mark begins a new one
        begin = unit == "subword_nmt" and not joined
    return [(_joined(parts, unit), places) for parts, places in words]


def _joined(parts: List[str], unit: str) -> str:
    """Return the text of a word; sentencepiece may have spelt some of its characters in bytes."""
    text = " ".join(parts)
    return (bytes_as_text(text) if unit == "sentencepiece" else text).replace(" ", "")


def by_sentence(tokens: Iterable[Token]) -> Sentences:
    """Return {sentence: its tokens}."""
    sentences: Sentences = {}
    for token in tokens:
        sentences.setdefault(token.sentence, []).append(token)
    return sentences


class Word(NamedTuple):
    """A word's mean L_t over ``count`` occurrences, each the mean of its tokens."""

    text: str
    frequency: int
    count: int  # type: ignore[assignment]  # a column of the table; it hides tuple.count
    mean: float
    deviation: float


def occurrences(sentences: Sentences, unit: str) -> Dict[str, List[float]]:
    """Return {word: L_t of each occurrence, the mean over its tokens}."""
    values: Dict[str, List[float]] = {}
    for tokens in sentences.values():
        for text, places in words_of([token.symbol for token in tokens], unit):
            # of its tokens, as the paper averages over the characters of a word
            mean = sum(tokens[place].penalty for place in places) / len(places)
            values.setdefault(text, []).append(mean)
    return values


def words_with_frequency(
    values: Dict[str, List[float]], frequencies: Optional[Mapping[str, int]]
) -> List[Word]:
    """Return the words, most frequent first; frequencies: {word: count}, None to count here."""
    words = []
    for text, means in values.items():
        mean = sum(means) / len(means)
        spread = math.sqrt(sum((value - mean) ** 2 for value in means) / len(means))
        frequency = len(means) if frequencies is None else frequencies.get(text, 0)
        words.append(Word(text, frequency, len(means), mean, spread))
    return sorted(words, key=lambda word: (-word.frequency, word.text))
