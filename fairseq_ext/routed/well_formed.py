"""Search that writes well-formed targets only: tags as many as words, brackets that match.

A constraint says before every step of the beam search which symbols a hypothesis may continue
with. No symbol is allowed that would leave too few steps for what is still due, so that every
hypothesis that ends is well-formed, and a search over all sequences would find the best of the
well-formed ones.

tags    as many as the source has words
trees   linearised as in ``formats.trees``: one outermost bracket, each closed by one of its label
        and not empty, as many leaves as the source has words
graphs  brackets match, and nothing follows the outermost one

Words that are spelt in several pieces are counted by the marks of the dictionary: "▁" begins a
word (sentencepiece), "@@" ends a piece that goes on (subword-nmt, fastBPE).

Dimensions: B sentences, R = B * K rows (the K hypotheses of a sentence), V symbols, S source
positions, D brackets open at once.
"""

import logging
from typing import Dict, Optional, Tuple

import torch
from fairseq.data import Dictionary
from torch import Tensor

from ..common.beam_search import ConstraintState
from ..common.labels import MADE_UP
from .formats import DEEPEST

logger = logging.getLogger(__name__)

OPTION = "--well-formed-targets"
BEGINS_WORD, GOES_ON = "▁", "@@"
NOTHING, OPENS, CLOSES, LEAF = range(4)


def subword_mark(dictionary: Dictionary, name: str) -> Optional[str]:
    """Return the mark by which a dictionary's symbols make up words, None for whole words.

    name: of the dictionary's file. ValueError for a dictionary with both marks.
    """
    symbols = dictionary.symbols[dictionary.nspecial :]
    begins = any(symbol.startswith(BEGINS_WORD) for symbol in symbols)
    goes_on = any(symbol.endswith(GOES_ON) for symbol in symbols)
    if begins and goes_on:
        raise ValueError(
            f"{OPTION}: {name} has symbols that begin with {BEGINS_WORD!r} and symbols that end "
            f"with {GOES_ON!r}, so that words cannot be counted; allowed: one of the two"
        )
    return BEGINS_WORD if begins else GOES_ON if goes_on else None


def adds_word(symbol: str, mark: Optional[str]) -> bool:
    """True if a symbol adds a word: its beginning with "▁", otherwise its end."""
    if mark == BEGINS_WORD:
        return symbol.startswith(mark)
    return mark is None or not symbol.endswith(mark)


def counted_symbols(dictionary: Dictionary, mark: Optional[str]) -> Tensor:
    """Return which symbols add a word (V,)."""
    return torch.tensor([adds_word(symbol, mark) for symbol in dictionary.symbols])


def ordinary_symbols(dictionary: Dictionary) -> Tensor:
    """Return which symbols are neither special nor fairseq-preprocess's filling (V,)."""
    return torch.tensor(
        [
            index >= dictionary.nspecial and not symbol.startswith(MADE_UP)
            for index, symbol in enumerate(dictionary.symbols)
        ]
    )


class SourceWords:
    """Counts the words of sources.

    Args:
        dictionary: of the sources.
        name: of its file, for errors.
        first_tokens: tokens in front of every source that are no words.
    """

    def __init__(self, dictionary: Dictionary, name: str, first_tokens: int):
        self.mark, self.name = subword_mark(dictionary, name), name
        self.counted = counted_symbols(dictionary, self.mark)
        self.begins = self.mark == BEGINS_WORD
        self.pad, self.eos, self.unk = dictionary.pad(), dictionary.eos(), dictionary.unk()
        self.first_tokens = first_tokens
        self.has_warned = False

    def warn_of_lost_marks(self, tokens: Tensor) -> None:
        """Warn, once, of pieces of words in sources (B, S) that the dictionary lacks.

        The number in their place says nothing of their marks.
        """
        if self.mark is None or self.has_warned or not tokens.eq(self.unk).any():
            return
        self.has_warned = True
        counted, number = ("goes on with", "few") if self.begins else ("ends", "many")
        logger.warning(
            f"{OPTION}: sources have sub-words that are not in {self.name}, and the mark "
            f"{self.mark!r} of these is lost: each {counted} a word, so that targets may have too "
            f"{number} words; allowed: sources that are cut as the training text is"
        )

    def count(self, tokens: Tensor) -> Tensor:
        """Return the number of words (B,) of sources (B, S), padded on either side."""
        real = tokens.ne(self.pad) & tokens.ne(self.eos)  # (B, S)
        place = real.long().cumsum(dim=1)  # number of the token in its sentence, from 1
        real &= place > self.first_tokens
        counted = self.counted.to(tokens.device)[tokens]  # (B, S)
        if self.begins:  # the first piece begins a word, whatever it looks like
            counted = counted | place.eq(self.first_tokens + 1)
        return (counted & real).sum(dim=1)


class Constraint:
    """Well-formed targets of one kind; common to all batches.

    Args:
        source: counts the words.
        dictionary: of the targets.
        name: of its file, for errors.
    """

    kind: str
    option = OPTION

    def __init__(self, source: SourceWords, dictionary: Dictionary, name: str):
        self.source, self.dictionary, self.name = source, dictionary, name
        self.eos = dictionary.eos()

    def start(self, tokens: Tensor, beam: int, limits: Tensor) -> ConstraintState:
        """Return the state before the first step.

        tokens: the sources (B, S). limits: symbols of a target without its end, at most (B,).
        ValueError if these are too few for a sentence.
        """
        words = self.source.count(tokens)
        due = self.due(words)
        if due.any():  # graphs count no words
            self.source.warn_of_lost_marks(tokens)
        if (due > limits).any():
            row = int((due - limits).argmax())
            raise ValueError(
                f"{OPTION}: a sentence of {int(words[row])} words needs {int(due[row])} symbols, "
                f"--max-len-a and --max-len-b allow {int(limits[row])}; allowed: larger ones"
            )
        return self.begin(words.repeat_interleave(beam))  # (R,)

    def due(self, words: Tensor) -> Tensor:
        """Return how many symbols a target has at least (B,); ``words`` (B,) of its source."""
        raise NotImplementedError

    def begin(self, words: Tensor) -> ConstraintState:
        """Return the state of R rows; ``words`` (R,) of their sources."""
        raise NotImplementedError


class Tags(Constraint):
    """As many words as the source has."""

    kind = "tags"

    def __init__(self, source: SourceWords, dictionary: Dictionary, name: str):
        super().__init__(source, dictionary, name)
        mark = subword_mark(dictionary, name)
        self.adds = counted_symbols(dictionary, mark)
        self.ordinary = ordinary_symbols(dictionary)
        self.begins = mark == BEGINS_WORD

    def due(self, words: Tensor) -> Tensor:
        """Return N, one tag for each word (R,)."""
        return words

    def begin(self, words: Tensor) -> ConstraintState:
        """Return the state of R rows of N words each (R,), none of them written."""
        return _TagState(self, words)


class _TagState:
    """The number of words that every row has written, of those of its source."""

    def __init__(self, tags: Tags, words: Tensor):
        self.tags, self.words = tags, words  # N (R,)
        self.adds = (tags.adds & tags.ordinary).to(words.device)  # (V,)
        self.others = (~tags.adds & tags.ordinary).to(words.device)
        self.count = torch.zeros_like(words)  # n (R,)

    def allowed(self, left: Tensor) -> Tensor:
        missing = self.words - self.count  # words still due (R,)
        # "▁" pieces go on after the last word's beginning, "@@" pieces only before its end
        inside = self.count > 0 if self.tags.begins else missing > 0
        # a symbol that adds no word takes a step, and the words still due need one each
        inside = inside & (missing < left)
        # (R, V)
        symbols = (missing > 0).unsqueeze(1) & self.adds | inside.unsqueeze(1) & self.others
        symbols[:, self.tags.eos] = missing.eq(0)
        return symbols

    def advance(self, symbols: Tensor, order: Tensor) -> None:
        # the row goes on from another: what belongs to its source and history moves first
        self.words = self.words[order]
        self.count = self.count[order] + self.adds[symbols].long()


class Trees(Constraint):
    """Brackets of one label each around as many leaves as the source has words."""

    kind = "trees"

    def __init__(self, source: SourceWords, dictionary: Dictionary, name: str):
        super().__init__(source, dictionary, name)
        mark = subword_mark(dictionary, name)
        kinds, labels = [], []
        numbers: Dict[str, int] = {}
        # sentencepiece's mark is no part of a label
        texts = [symbol[mark == BEGINS_WORD :] for symbol in dictionary.symbols]
        closed = {text[1:] for text in texts if text.startswith(")")}
        for text, symbol, usable in zip(
            texts, dictionary.symbols, ordinary_symbols(dictionary).tolist()
        ):
            if usable and not adds_word(symbol, mark):
                raise ValueError(
                    f"{OPTION}: {name} has the symbol {symbol!r}, a part of one; allowed for "
                    "trees: whole symbols"
                )
            kind, label = _bracket(text) if usable else (NOTHING, "")
            if kind == OPENS and label not in closed:
                kind = NOTHING  # it could not be closed
            kinds.append(kind)
            # brackets of one label have one number, whether they open or close
            labels.append(numbers.setdefault(label, len(numbers)))
        self.kinds, self.labels = torch.tensor(kinds), torch.tensor(labels)
        for kind, what in ((OPENS, "bracket that is closed by one of its label"), (LEAF, "leaf")):
            if kind not in kinds:
                raise ValueError(
                    f"{OPTION}: {name} has no {what}; allowed for trees: linearised ones"
                )

    def due(self, words: Tensor) -> Tensor:
        """Return N + 2 (R,): leaves and a pair of brackets around them; 0 for an empty source."""
        return torch.where(words > 0, words + 2, words)

    def begin(self, words: Tensor) -> ConstraintState:
        """Return the state of R rows of N words each (R,), no bracket open."""
        return _TreeState(self, words)


def _bracket(text: str) -> Tuple[int, str]:
    """Return the kind of a tree's symbol, and its label if it is a bracket."""
    if "(" in text[1:] or ")" in text[1:]:
        return NOTHING, ""
    if text.startswith("("):
        return (OPENS, text[1:]) if len(text) > 1 else (NOTHING, "")
    if text.startswith(")"):
        return CLOSES, text[1:]
    return (LEAF, "") if text else (NOTHING, "")


class _TreeState:
    """The open brackets of every row; ``stack`` (R, D) holds the numbers of their labels."""

    def __init__(self, trees: Trees, words: Tensor):
        device = words.device
        self.eos, self.words = trees.eos, words  # N (R,)
        self.kinds, self.labels = trees.kinds.to(device), trees.labels.to(device)  # (V,)
        self.limit = DEEPEST - 2  # those of the treebank's outermost bracket and of a word
        self.stack = words.new_zeros(len(words), self.limit + 1)
        self.depth = torch.zeros_like(words)
        self.leaves = torch.zeros_like(words)
        self.opened = torch.zeros_like(words, dtype=torch.bool)  # the last symbol opens

    def allowed(self, left: Tensor) -> Tensor:
        missing = self.words - self.leaves  # (R,)
        due = missing + self.depth  # symbols that finish the tree
        # a new bracket takes two steps, its own and that of the one that closes it
        opens = (missing > 0) & (self.depth < self.limit) & (due + 2 <= left)
        # leaves stand inside of a bracket only
        leaf = (missing > 0) & (self.depth > 0)
        # no bracket is empty, and the outermost one closes behind the last word
        closes = (self.depth > 0) & ~self.opened & ((self.depth > 1) | missing.eq(0))
        # of the innermost open bracket; without any, ``closes`` is False and this is not read
        label = self.stack.gather(1, (self.depth - 1).clamp(min=0).unsqueeze(1))  # (R, 1)
        symbols = (
            opens.unsqueeze(1) & self.kinds.eq(OPENS)
            | leaf.unsqueeze(1) & self.kinds.eq(LEAF)
            | closes.unsqueeze(1) & self.kinds.eq(CLOSES) & self.labels.eq(label)
        )
        symbols[:, self.eos] = due.eq(0)  # all words are written and all brackets closed
        return symbols

    def advance(self, symbols: Tensor, order: Tensor) -> None:
        kinds = self.kinds[symbols]
        self.opened = kinds.eq(OPENS)
        self.words, depth = self.words[order], self.depth[order]
        # the place above the open brackets is free: whatever is written there is not read
        place = depth.clamp(0, self.limit).unsqueeze(1)
        self.stack = self.stack[order].scatter(1, place, self.labels[symbols].unsqueeze(1))
        self.depth = (depth + self.opened.long() - kinds.eq(CLOSES).long()).clamp(0, self.limit)
        self.leaves = self.leaves[order] + kinds.eq(LEAF).long()


class Graphs(Constraint):
    """Brackets that match, in symbols or pieces of symbols, and one outermost pair."""

    kind = "graphs"

    def __init__(self, source: SourceWords, dictionary: Dictionary, name: str):
        super().__init__(source, dictionary, name)
        depths = zip(*(_depths(symbol) for symbol in dictionary.symbols))
        self.change, self.lowest, self.inside = map(torch.tensor, depths)
        self.has_bracket = torch.tensor(
            [bool({*symbol} & {*"()"}) for symbol in dictionary.symbols]
        )
        self.ordinary = ordinary_symbols(dictionary)
        # whatever is open can be closed only if a symbol closes a single bracket
        if (self.ordinary & self.change.gt(0)).any() and not (
            self.ordinary & self.change.eq(-1) & self.lowest.eq(-1)
        ).any():
            raise ValueError(f"{OPTION}: {name} has brackets that open and none that closes them")

    def due(self, words: Tensor) -> Tensor:
        """Return 0 (R,): a graph need not have as many symbols as its source has words."""
        return torch.zeros_like(words)

    def begin(self, words: Tensor) -> ConstraintState:
        """Return the state of R rows, no bracket open; their sources do not matter."""
        return _GraphState(self, words)


def _depths(symbol: str) -> Tuple[int, int, int]:
    """Return how a symbol changes the number of open brackets, and the lowest changes on the way.

    The first of these is that before and behind any character, the second that behind a bracket
    that closes and that more of the symbol follows; ``DEEPEST`` where none does.
    """
    depth, lowest, inside = 0, 0, DEEPEST
    for place, character in enumerate(symbol, 1):
        depth += (character == "(") - (character == ")")
        lowest = min(lowest, depth)
        if character == ")" and place < len(symbol):
            inside = min(inside, depth)
    return depth, lowest, inside


class _GraphState:
    """The number of open brackets of every row, and whether its outermost pair is closed."""

    def __init__(self, graphs: Graphs, words: Tensor):
        device = words.device
        self.eos, self.ordinary = graphs.eos, graphs.ordinary.to(device)
        self.change, self.lowest = graphs.change.to(device), graphs.lowest.to(device)
        self.inside, self.has_bracket = graphs.inside.to(device), graphs.has_bracket.to(device)
        self.depth = torch.zeros_like(words)
        self.is_complete = torch.zeros_like(words, dtype=torch.bool)  # the outermost pair is closed

    def allowed(self, left: Tensor) -> Tensor:
        # open brackets behind each symbol
        after = self.depth.unsqueeze(1) + self.change  # (R, V)
        symbols = (
            self.ordinary
            # no bracket inside of the symbol closes what nobody opened
            & (self.depth.unsqueeze(1) + self.lowest >= 0)
            # none but its last character closes the outermost one
            & (self.depth.unsqueeze(1) + self.inside > 0)
            # every bracket that is open takes one of the steps that are left to close it
            & (after < left.clamp(max=DEEPEST).unsqueeze(1))
        )
        symbols &= ~self.is_complete.unsqueeze(1)
        symbols[:, self.eos] = self.depth.eq(0)
        return symbols

    def advance(self, symbols: Tensor, order: Tensor) -> None:
        self.depth = (self.depth[order] + self.change[symbols]).clamp(min=0)
        closes = self.has_bracket[symbols] & self.depth.eq(0)  # the outermost bracket
        self.is_complete = self.is_complete[order] | closes


CONSTRAINTS = {constraint.kind: constraint for constraint in (Tags, Trees, Graphs)}


def constraint_of(
    kind: str, sources: Dictionary, targets: Dictionary, pair: Tuple[str, str]
) -> Optional[Constraint]:
    """Return the constraint of a kind of targets, None for text.

    pair: the languages; sources begin with the task token, which is no word.
    """
    if kind not in CONSTRAINTS:
        return None
    words = SourceWords(sources, f"dict.{pair[0]}.txt", first_tokens=1)
    return CONSTRAINTS[kind](words, targets, f"dict.{pair[1]}.txt")
