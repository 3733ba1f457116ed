"""Meaning representations (AMR in PENMAN notation): a sentence and its graph in one line.

Simplified as in Konstas et al. (2017): variables are left out, a variable that comes again is
replaced by its concept; links to Wikipedia and the senses of predicates go away as well.

    # ::snt I knew it .
    (k / know-01                        ->  I knew it .
       :ARG0 (i / i)
       :ARG1 (i2 / it :mod i))              ( know :ARG0 i :ARG1 ( it :mod i ) )

A node without relations stands without brackets.
"""

import re
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Tuple, Union

from . import LinePair, Malformed, check_depth, no_options, paragraphs

if TYPE_CHECKING:
    from penman.tree import Tree

SENTENCE = "snt"
WIKI = ":wiki"
SENSE = re.compile(r"(?<=\w)-\d\d+$")
ALIGNMENT = re.compile(r"~[a-z]?\.?\d+(,\d+)*$")
VARIABLE = re.compile(r"[a-z]\d*")
NUMBER = re.compile(r"[-+]?\d[\d.,:/-]*")
# a quoted text, a comment, a bracket, anything else
PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|#.*|[()]|[^\s()]+')
# what a line may consist of: brackets, quoted texts, roles, anything else without PENMAN's signs
SYMBOL = re.compile(r'[()]|"(?:[^"\\]|\\.)*"|(?!#):?[^\s()/:"~]+')
# values that are no concepts (AMR guidelines)
CONSTANTS = ("-", "+", "imperative", "expressive", "interrogative")

# penman's (variable, [(role, target)]); a target is a constant, a variable or a node
PenmanNode = Tuple[Optional[str], List[Tuple[str, Any]]]

blocks, of_file = paragraphs, no_options


class Node(NamedTuple):
    """A concept or constant with its relations: [(role, node)]."""

    concept: str
    relations: List[Tuple[str, "Node"]]


# ---------------------------------------------------------------- PENMAN -> line


def _brackets(text: str) -> int:
    """Return how many brackets are open at once, at most."""
    depth = deepest = 0
    for piece in PIECE.findall(text):
        depth += (piece == "(") - (piece == ")")
        deepest = max(deepest, depth)
    return deepest


def _check_end(text: str) -> None:
    """Raise Malformed for anything but comments and other graphs after a graph's last bracket.

    penman would leave it out in silence.
    """
    depth, over = 0, False
    for number, line in enumerate(text.split("\n")):
        for piece in PIECE.findall(line):
            if piece.startswith("#"):
                continue
            if over and piece != "(":
                raise Malformed(f"{piece!r} after the last bracket of the graph", number)
            depth += (piece == "(") - (piece == ")")
            over = depth == 0


def read_penman(text: str) -> Optional[Tuple[str, "Tree"]]:
    """Return (sentence, penman's tree) of a block, or None for comments without a sentence.

    Raises Malformed, with the line that penman names.
    """
    import penman
    from penman.exceptions import PenmanError

    # comments at the head of a file, as in the releases of AMR
    if all(line.lstrip().startswith("#") for line in text.split("\n")):
        if f"::{SENTENCE} " in text:
            raise Malformed("no graph after the sentence")
        return None
    check_depth(_brackets(text))  # before penman's parser, which is recursive
    try:
        trees = list(penman.iterparse(text))
    except PenmanError as error:
        line = (getattr(error, "lineno", None) or 1) - 1  # penman counts from 1
        reason = getattr(error, "message", None) or str(error)
        raise Malformed(f"not a graph: {reason}", line) from error
    _check_end(text)
    if len(trees) != 1:
        raise Malformed(f"{len(trees)} graphs; allowed: one, and blank lines between graphs")
    sentence = " ".join(trees[0].metadata.get(SENTENCE, "").split())
    if not sentence:
        raise Malformed(f"no sentence: a line '# ::{SENTENCE} ...' must stand before the graph")
    return sentence, trees[0]


def _concepts(tree: "Tree", senses: bool) -> Dict[str, str]:
    """Return {variable: concept}. Raises Malformed for a variable without one, or with two."""
    concept_of: Dict[str, str] = {}
    for variable, branches in tree.nodes():
        # the relation "/" leads to a node's concept
        concepts = [target for role, target in branches if role == "/" and target]
        if len(concepts) != 1 or variable in concept_of:
            count = "two concepts" if concepts else "no concept"
            raise Malformed(f"variable {variable} has {count}")
        concept = ALIGNMENT.sub("", concepts[0])
        concept_of[variable] = concept if senses else SENSE.sub("", concept)
    return concept_of


def _atom(text: str, concepts: Dict[str, str]) -> str:
    """Return the symbol of a constant, or of a variable that is introduced elsewhere."""
    value = ALIGNMENT.sub("", text)
    if value in concepts:
        return concepts[value]
    if VARIABLE.fullmatch(value):
        raise Malformed(f"variable {value} is nowhere introduced")
    # one symbol for one value, as symbols are parted by spaces
    return "_".join(value.split())


def _linear(node: PenmanNode, concepts: Dict[str, str]) -> List[str]:
    """Return the symbols of a node and of all below it."""
    variable, branches = node
    if variable is None:
        raise Malformed("a bracket without content")
    symbols = [concepts[variable]]
    for role, target in branches:
        role = ALIGNMENT.sub("", role)
        if role in ("/", WIKI):
            continue
        if target is None:
            raise Malformed(f"relation {role} of {variable} has no value")
        inside = _linear(target, concepts) if isinstance(target, tuple) else None
        symbols += [role, *(inside or [_atom(target, concepts)])]
    return symbols if len(symbols) == 1 else ["(", *symbols, ")"]


def forward(text: str, senses: bool = False) -> Optional[LinePair]:
    """Return (sentence, linearised graph) of a block, None for comments.

    senses: keep -01 and so on.
    """
    item = read_penman(text)
    if item is None:
        return None
    sentence, tree = item
    return sentence, " ".join(_linear(tree.node, _concepts(tree, senses)))


# ---------------------------------------------------------------- line -> PENMAN


def read_line(line: str) -> Node:
    """Return the top node of a linearised graph.

    Raises Malformed unless the brackets match, each holds a concept and relations in turn, and
    there is one top node.
    """
    root = Node("", [])
    opened, role = [root], ":top"
    for symbol in line.split():
        inner = opened[-1]
        if symbol == ")":
            if role or inner is root or not inner.relations:
                raise Malformed("a closing bracket where none is due")
            opened.pop()
        elif symbol.startswith(":") and len(symbol) > 1:
            if role or not inner.concept:
                raise Malformed(f"relation {symbol} where none is due")
            role = symbol
        elif symbol == "(":
            if not role:
                raise Malformed("an opening bracket where none is due")
            inner.relations.append((role, Node("", [])))
            opened.append(inner.relations[-1][1])
            check_depth(len(opened))  # a node without brackets has some in PENMAN
            role = ""
        elif inner is not root and not inner.concept and not inner.relations:
            _name(opened, symbol)
        elif role:
            inner.relations.append((role, Node(symbol, [])))
            role = ""
        else:
            raise Malformed(f"value {symbol!r} without a relation")
    if len(opened) > 1 or role:
        raise Malformed(f"the line ends after {role}" if role else "a bracket is not closed")
    return root.relations[0][1]


def _name(opened: List[Node], concept: str) -> None:
    """Give the innermost open node its concept; it is a tuple, so it is replaced."""
    outer = opened[-2]
    role, node = outer.relations[-1]
    outer.relations[-1] = (role, node._replace(concept=concept))
    opened[-1] = outer.relations[-1][1]


def _is_constant(text: str) -> bool:
    return text in CONSTANTS or text.startswith('"') or NUMBER.fullmatch(text) is not None


def _check_symbols(line: str) -> None:
    """Raise Malformed for a symbol that PENMAN would read as something else, as a lone quote."""
    for symbol in line.split():
        if not SYMBOL.fullmatch(symbol):
            raise Malformed(f"{symbol!r} is no bracket, role, concept or constant of PENMAN")


def backward(source: str, target: str) -> str:
    """Return the graph in PENMAN, with its sentence.

    Every concept becomes a node of its own, with a new variable: which mentions are one node is
    not in the line. Raises Malformed for a line that is no graph.
    """
    import penman

    _check_symbols(target)
    used: Dict[str, int] = {}

    def branch(node: Node) -> Union[str, PenmanNode]:
        if not node.relations and _is_constant(node.concept):
            return node.concept
        # variables are a letter and, from the second one of a letter on, a number
        letter = node.concept[0].lower()
        letter = letter if letter.isascii() and letter.isalpha() else "x"
        used[letter] = used.get(letter, 0) + 1
        variable = letter if used[letter] == 1 else f"{letter}{used[letter]}"
        inside = [(role, branch(child)) for role, child in node.relations]
        return variable, [("/", node.concept), *inside]

    top = branch(read_line(target))
    if isinstance(top, str):
        raise Malformed(f"the top node is the constant {top}; allowed: a concept")
    tree = penman.Tree(top, metadata={SENTENCE: " ".join(source.split())})
    return penman.format(tree) + "\n\n"
