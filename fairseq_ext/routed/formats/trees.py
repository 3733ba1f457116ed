"""Phrase structure trees (Penn Treebank .mrg): a sentence and its tree in one line.

Linearised as in Vinyals et al. (2015, "Grammar as a foreign language"): depth first, each phrase
between (LABEL and )LABEL, each word as its part of speech.

    (S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .))
    ->  John has a dog .        (S (NP NNP )NP (VP VBZ (NP DT NN )NP )VP . )S

Traces and other empty elements (-NONE-) and the phrases that hold nothing else are left out.
"""

import re
from typing import TYPE_CHECKING, Iterable, List, NamedTuple, Tuple, Union

from . import Block, LinePair, Malformed, check_depth, no_options

if TYPE_CHECKING:
    from nltk.tree import Tree

# one symbol for all words
ANY = "XX"
EMPTY = "-NONE-"
# how the treebank writes signs that would be taken for its own
SIGNS = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LCB-": "{",
    "-RCB-": "}",
    "-LSB-": "[",
    "-RSB-": "]",
    "\\/": "/",
    "\\*": "*",
}
SIGN = re.compile("|".join(map(re.escape, SIGNS)))
# NP-SBJ-1, NP=2: numbers point to other phrases, words say the function
NUMBERS = re.compile(r"[-=]\d+")
FUNCTIONS = re.compile(r"(?<=.)[-=].*")


class Phrase(NamedTuple):
    """A bracket of a linearised tree; its children are phrases and, as text, leaves."""

    label: str
    children: List[Union["Phrase", str]]

    def leaves(self) -> List[str]:
        """Return the leaves, from left to right."""
        leaves: List[str] = []
        waiting: List[Union[Phrase, str]] = [self]
        # no recursion: children wait on a stack, the leftmost on top
        while waiting:
            part = waiting.pop()
            if isinstance(part, str):
                leaves.append(part)
            else:
                waiting.extend(reversed(part.children))
        return leaves


# ---------------------------------------------------------------- files of trees


of_file = no_options


def blocks(lines: Iterable[str]) -> List[Block]:
    """Return each tree: what one outermost pair of brackets holds.

    Where brackets do not balance, a bracket in the first column begins a tree, as it does in the
    treebank's files: the faulty tree alone is lost.
    """
    lines = list(lines)
    depths = _outer(lines, False)
    balanced = all(text.count("(") == text.count(")") for _, text in depths)
    return depths if balanced else _outer(lines, True)


def _outer(lines: List[str], column: bool) -> List[Block]:
    """Return the texts between outermost brackets; with ``column`` one in front begins a tree."""
    texts: List[Block] = []
    part, depth, start = "", 0, 1
    for number, line in enumerate(lines, start=1):
        # whatever stood before is an item by itself, which the reader will refuse
        if column and line.startswith("(") and part.strip():
            texts.append((start, part.strip()))
            part, depth = "", 0
        for piece in re.findall(r"[()]|[^()]+", line + "\n"):
            # the text begins at its first bracket or word, whose line errors name
            if not part.strip():
                part, start = "", number
            part += piece
            depth += (piece == "(") - (piece == ")")
            # a bracket too many closes a text as well, so that the next one is read by itself
            if depth <= 0 and piece in "()":
                texts.append((start, part.strip()))
                part, depth = "", 0
    if part.strip():
        texts.append((start, part.strip()))
    return texts


def read_treebank(text: str) -> "Tree":
    """Return one tree as nltk reads it.

    Raises Malformed for faulty brackets and words without a tag.
    """
    from nltk.tree import Tree

    depth = 0
    for bracket in re.findall("[()]", text):
        depth += 1 if bracket == "(" else -1
        check_depth(depth)
    try:
        # the treebank puts a pair of brackets without a label around each tree
        tree = Tree.fromstring(text, remove_empty_top_bracketing=True)
    except ValueError as error:
        reason = " ".join(str(error).split("\n")[0].split())
        raise Malformed(f"not a tree ({reason}): {_start(text)}") from error
    for node in tree.subtrees():
        words = [child for child in node if isinstance(child, str)]
        if not node.label() or not len(node):
            lack = "label" if len(node) else "content"
            raise Malformed(f"a bracket without {lack} in {_start(text)}")
        # a word stands alone in the bracket of its part of speech
        if words and len(node) > 1:
            raise Malformed(f"word {words[0]!r} has no part of speech in {_start(text)}")
    return tree


def _start(text: str) -> str:
    """Return the beginning of a text in one line, for errors."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else flat[:60] + " ..."


# ---------------------------------------------------------------- treebank -> line


def _plain(label: str, function_tags: bool) -> str:
    """Return a label without numbers and, unless they are wanted, function tags."""
    # -LRB- and -NONE- are parts of speech themselves
    if label.startswith("-"):
        return label
    return (NUMBERS if function_tags else FUNCTIONS).sub("", label)


def _linear(tree: "Tree", leaves: str, function_tags: bool) -> Tuple[List[str], List[str]]:
    """Return (words, symbols of the line), both empty where all is empty elements."""
    if not isinstance(tree[0], str):
        label = _plain(tree.label(), function_tags)
        # inner phrases come first: one without words leaves no trace in the line
        parts = [_linear(child, leaves, function_tags) for child in tree]
        words = [word for part, _ in parts for word in part]
        inside = [symbol for _, part in parts for symbol in part]
        return words, [f"({label}", *inside, f"){label}"] if words else []
    # a trace is no word of the sentence
    if tree.label() == EMPTY:
        return [], []
    # the sentence has the signs themselves, as other texts do
    word = SIGN.sub(lambda match: SIGNS[match.group()], tree[0])
    # as a leaf a word keeps the spelling in which it cannot be taken for a bracket
    leaf = {"tag": tree.label(), "xx": ANY, "word": escaped(word)}[leaves]
    return [word], [leaf]


def escaped(word: str) -> str:
    """Return a word as it may stand in a tree: brackets spelt as the treebank does."""
    return word.replace("(", "-LRB-").replace(")", "-RRB-")


def forward(text: str, leaves: str = "tag", function_tags: bool = False) -> LinePair:
    """Return (words, linearised tree) of a tree.

    leaves: what stands for a word: "tag", its part of speech, "xx", one symbol for all, or "word",
    the word itself. function_tags: keep -SBJ, -TMP and so on; numbers never stay.
    """
    words, symbols = _linear(read_treebank(text), leaves, function_tags)
    if not words:
        raise Malformed(f"no words in {_start(text)}")
    return " ".join(words), " ".join(symbols)


# ---------------------------------------------------------------- line -> treebank


def read_line(line: str) -> Phrase:
    """Return the outermost phrase of a linearised tree.

    Raises Malformed unless every bracket is closed by one of its label, there is one outermost
    bracket, and every bracket holds something.
    """
    root = Phrase("", [])
    opened: List[Phrase] = []
    for symbol in line.split():
        inner = opened[-1] if opened else root
        if "(" in symbol[1:] or ")" in symbol[1:]:
            raise Malformed(f"a bracket within {symbol!r}")
        if symbol.startswith("(") and len(symbol) > 1:
            opened.append(Phrase(symbol[1:], []))
            check_depth(len(opened) + 2)  # the treebank's outermost one and those of words
            inner.children.append(opened[-1])
        elif not symbol.startswith((")", "(")):
            inner.children.append(symbol)
        # it can only close the innermost open bracket
        elif not opened or symbol != f"){inner.label}":
            due = f"){inner.label}" if opened else "no closing bracket"
            raise Malformed(f"{symbol!r} where {due!r} is due")
        elif not inner.children:
            raise Malformed(f"nothing between ({inner.label} and {symbol}")
        else:
            opened.pop()
    if opened:
        raise Malformed(f"({opened[-1].label} is not closed")
    if len(root.children) != 1 or isinstance(root.children[0], str):
        raise Malformed(f"{line!r} is not one bracket with everything inside")
    return root.children[0]


def backward(source: str, target: str, leaves: str = "tag") -> str:
    """Return a tree of the treebank in one line.

    leaves: what stands for the words in ``target``. Raises Malformed for brackets that do not
    match, and unless there are as many leaves as words.
    """
    tree, words = read_line(target), source.split()
    if len(tree.leaves()) != len(words):
        raise Malformed(f"{len(tree.leaves())} leaves for {len(words)} words")
    rest = iter(words)

    def text(part: Union[Phrase, str]) -> str:
        if isinstance(part, str):
            # xx and words tell no part of speech
            return f"({part if leaves == 'tag' else ANY} {escaped(next(rest))})"
        return f"({part.label} {' '.join(map(text, part.children))})"

    return f"( {text(tree)} )\n"
