"""Equations in plain text, as pages and docstrings write them, turned into MathML.

A column of a line is an equation if every part of it is notation: names with sub- and
superscripts, numbers, brackets, operators. A block stays preformatted text unless at least half of
its lines begin with an equation, so that commands and messages are never taken for mathematics.

    h_t = tanh(W_h h_{t-1} + b)      a remark, after two spaces or more      (Eq. 1)
"""

import re
import xml.etree.ElementTree as etree  # noqa: N813 (as markdown names it)
from typing import List, NamedTuple, Optional, Tuple

from markdown import Markdown
from markdown.blockprocessors import BlockProcessor
from markdown.extensions import Extension
from markdown.util import AtomicString

GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "lambda": "λ", "phi": "φ"}
GREEK.update({"pi": "π", "sigma": "σ", "tau": "τ", "theta": "θ", "sum": "∑", "sqrt": "√"})
FUNCTIONS = set("argmin cos exp ln log max mean min mel sigmoid softmax sum tanh".split())
OPERATORS = {"||": "‖", "|": "|", "->": "→", "<-": "←", "<=": "≤", ">=": "≥", "-": "−"}
OPERATORS.update({"*": "∗", ".": "·", "..": "…", "~": "∼"})
# a column with one of these is a sentence
PROSE = set("an and are by each for from has in is of on or over than the to what with".split())
ASIDE = re.compile(r",\s+(?=(?:and|for|which|with|teacher-forced)\b)")
TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<word>[A-Za-z]{2,}-[A-Za-z]{1,}(?![A-Za-z])|[A-Za-z]+)
      | (?P<number>\d+(?:\.\d+)?(?:,\d{3})*)
      | (?P<script>[_^])
      | (?P<prime>')
      | (?P<operator>\|\||->|<-|<=|>=|\.\.|[-+*/=.;:,~|<>])
      | (?P<open>[(\[{])
      | (?P<close>[)\]}])""",
    re.VERBOSE,
)
CLOSING = {"(": ")", "[": "]", "{": "}"}


class NotAnEquation(Exception):
    """The text holds something that is no notation."""


class Token(NamedTuple):
    kind: str
    text: str


def tokens(text: str) -> List[Token]:
    """Return the tokens of an equation; NotAnEquation at anything else."""
    result, position = [], 0
    while position < len(text):
        match = TOKEN.match(text, position)
        if not match or match.group() in PROSE:
            raise NotAnEquation(text)
        result.append(Token(str(match.lastgroup), match.group()))
        position = match.end()
    words = [token.text if token.kind == "word" else "" for token in result if token.text.strip()]
    for first, second in zip(words, words[1:]):
        if min(len(first), len(second)) > 2 and not {first, second} & (FUNCTIONS | GREEK.keys()):
            raise NotAnEquation(f"{first} {second}")
    return result


def element(tag: str, text: str = "", *children: etree.Element, **attributes: str) -> etree.Element:
    """Return an element whose text no other extension touches."""
    node = etree.Element(tag, attributes)
    if text:
        node.text = AtomicString(text)
    node.extend(children)
    return node


class Parser:
    """Reads tokens from left to right; each method returns MathML of what it has read."""

    def __init__(self, text: str):
        self.tokens, self.position = tokens(text), 0

    @property
    def next(self) -> Token:
        """The token to be read, of kind "end" after the last one."""
        return self.tokens[self.position] if self.position < len(self.tokens) else Token("end", "")

    def take(self) -> Token:
        """Return the next token and move on."""
        token = self.next
        self.position += 1
        return token

    def row(self, closing: str = "") -> etree.Element:
        """Read up to the closing bracket, which is left, or up to the end."""
        row, space = element("mrow"), False
        while self.next.kind != "end" and self.next.text != closing:
            if self.next.kind == "space":
                self.take()
                space = True
                continue
            if space and len(row) and row[-1].tag != "mo" and self.next.kind in ("word", "number"):
                row.append(element("mspace", width="0.2em"))
            row.append(self.scripted())
            space = False
        if self.next.text != closing:
            raise NotAnEquation("bracket without an end")
        return row

    def scripted(self) -> etree.Element:
        """Read an atom with its accent, primes and scripts."""
        spaced = self.position > 0 and self.tokens[self.position - 1].kind == "space"
        base = self.atom(spaced)
        if base.tag == "mi" and self.next.text == "~":
            self.take()
            base = element("mover", "", base, element("mo", "~"), accent="true")
        scripts = {"_": [], "^": []}  # type: dict[str, List[etree.Element]]
        while self.next.kind in ("script", "prime"):
            token = self.take()
            if token.kind == "prime":
                scripts["^"].append(element("mo", "′"))
            else:
                scripts[token.text].append(self.script())
        return with_scripts(base, scripts["_"], scripts["^"])

    def script(self) -> etree.Element:
        """Read what stands below or above: a group, a number or a name."""
        token = self.take()
        if token.text in ("{", "("):
            row = self.row(CLOSING[token.text])
            self.take()
            return row if token.text == "{" else fenced("(", row, ")")
        if token.text in ("-", "<", ">") and self.next.kind in ("number", "word"):
            sign = element("mo", OPERATORS.get(token.text, token.text))
            return element("mrow", "", sign, self.script())
        if token.kind == "number":
            return element("mn", token.text)
        if token.kind == "word":
            # "t" and "ti" are indices, "enc" is a name
            return symbol(token.text) if len(token.text) != 2 else indices(token.text)
        raise NotAnEquation(f"{token.text} as a script")

    def atom(self, spaced: bool) -> etree.Element:
        """Read a bracket with its content, a name, a number or an operator."""
        token = self.take()
        if token.kind == "open":
            row = self.row(CLOSING[token.text])
            self.take()
            return fenced(token.text, row, CLOSING[token.text])
        if token.kind == "word":
            return symbol(token.text)
        if token.kind == "number":
            return element("mn", token.text)
        if token.kind == "operator" and (token.text != "." or spaced or self.next.kind == "end"):
            is_end = token.text == "." and self.next.kind == "end"
            text = "." if is_end else OPERATORS.get(token.text, token.text)
            return element("mo", text, stretchy="false")
        raise NotAnEquation(token.text)


def symbol(word: str) -> etree.Element:
    """Return a name: a Greek letter by its sign, one letter in italics, more of them upright."""
    if word in ("sum", "sqrt"):
        return element("mo", GREEK[word], stretchy="false")
    return element("mi", GREEK.get(word, word))


def indices(letters: str) -> etree.Element:
    """Return two indices that are written side by side."""
    return element("mrow", "", *(element("mi", letter) for letter in letters))


def fenced(opening: str, row: etree.Element, closing: str) -> etree.Element:
    """Return a row in its brackets."""
    marks = (element("mo", mark, stretchy="false") for mark in (opening, closing))
    return element("mrow", "", next(marks), row, next(marks))


def with_scripts(
    base: etree.Element, below: List[etree.Element], above: List[etree.Element]
) -> etree.Element:
    """Return the base with everything that stands below and above it."""
    # fonts without a table of mathematics lower an index by its height alone
    low = element("mrow", "", element("mspace", height="0.8em"), *below)
    high = above[0] if len(above) == 1 else element("mrow", "", *above)
    if below and above:
        return element("msubsup", "", base, low, high)
    if below or above:
        return element("msub" if below else "msup", "", base, low if below else high)
    return base


def mathml(text: str) -> etree.Element:
    """Return the <math> element of an equation; NotAnEquation for any other text."""
    row = Parser(text.strip()).row()
    return element("math", "", row, display="inline", xmlns="http://www.w3.org/1998/Math/MathML")


def columns(line: str) -> Tuple[List[etree.Element], str]:
    """Return the equations at the beginning of a line, and the text that follows them."""
    line = re.sub(r"\s{2,}(=|<-)\s+", r" \1 ", line.strip())
    parts = re.split(r"\s{2,}", line)
    equations = []  # type: List[etree.Element]
    for number, part in enumerate(parts):
        if re.match(r"\(?(Eq|Sec)\.", part) or equations and not re.search(r"[=_^(]", part):
            return equations, " ".join(parts[number:])
        text, *aside = ASIDE.split(part, maxsplit=1)
        try:
            equations.append(mathml(text))
        except NotAnEquation:
            return equations, " ".join(parts[number:])
        if aside:
            return equations, " ".join([*aside, *parts[number + 1 :]])
    return equations, ""


def equation_table(text: str) -> Optional[etree.Element]:
    """Return a block of equations as a table; None if most of its lines have no equation."""
    rows = [(line, *columns(line)) for line in text.splitlines() if line.strip()]
    with_equations = sum(bool(equations) for _, equations, _ in rows)
    if "=" not in text or re.search(r"--|[$`\\#]", text) or 2 * with_equations < len(rows):
        return None
    table = element("table", **{"class": "equations", "role": "presentation"})
    for line, equations, remark in rows:
        if equations:
            cell = element("td", "", *(element("span", "", equation) for equation in equations))
            table.append(element("tr", "", cell, element("td", remark)))
        else:
            table.append(element("tr", "", element("td", line.strip(), colspan="2")))
    return element("div", "", table, **{"class": "equations-scroll"})


class EquationBlocks(BlockProcessor):
    """Indented blocks that consist of equations."""

    def test(self, parent: etree.Element, block: str) -> bool:
        """True if the block is indented as preformatted text is."""
        return block.startswith(" " * self.tab_length)

    def run(self, parent: etree.Element, blocks: List[str]) -> Optional[bool]:
        """Add the equations of the first block; False leaves it to the other processors."""
        block, rest = self.detab(blocks[0])
        table = None if rest.strip() else equation_table(block)
        if table is None:
            return False
        blocks.pop(0)
        parent.append(table)
        return None


class EquationExtension(Extension):
    """Python-Markdown's extension of this module."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 (markdown's name)
        """Put the processor before that of code blocks (80)."""
        md.parser.blockprocessors.register(EquationBlocks(md.parser), "equations", 85)
