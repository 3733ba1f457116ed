"""Annotated corpora as pairs of plain lines, and back: one module for each format.

``Format`` is what each module offers. A source line is the sentence, words separated by spaces.
Nothing here imports fairseq or torch.
"""

from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Protocol, Tuple

Block = Tuple[int, str]  # (number of the first line from 1, text)
LinePair = Tuple[str, str]  # (source line, target line)

# brackets within one another: functions that read and write them call themselves. The deepest
# tree of the treebank's sample has 30, the deepest graph of The Little Prince 12
DEEPEST = 150


class Malformed(ValueError):
    """An item that breaks its format.

    Args:
        reason: what is wrong, in words.
        line: how many lines below the item's first one.
    """

    def __init__(self, reason: str, line: int = 0):
        super().__init__(reason)
        self.line = line


def check_depth(depth: int) -> None:
    """Raise Malformed where more than ``DEEPEST`` brackets are open at once."""
    if depth > DEEPEST:
        raise Malformed(f"more than {DEEPEST} brackets within one another")


class Format(Protocol):
    """The module of a format; its functions raise ``Malformed`` for faulty items."""

    @property
    def blocks(self) -> Callable[[List[str]], Iterable[Block]]:
        """Return the items of a file's lines."""

    @property
    def of_file(self) -> Callable[[List[str]], Dict[str, Any]]:
        """Return the options of ``forward`` for a file in which items must agree."""

    @property
    def forward(self) -> Callable[..., Optional[LinePair]]:
        """Return the pair of an item (text, **options), None for one without a sentence."""

    @property
    def backward(self) -> Callable[..., str]:
        """Return an item of the corpus from (source line, target line, **options)."""


def no_options(lines: List[str]) -> Dict[str, Any]:
    """Return {}: the ``of_file`` of formats whose items are independent of each other."""
    return {}


def paragraphs(lines: Iterable[str]) -> Iterator[Block]:
    """Yield each run of lines that are not blank."""
    run: List[str] = []
    start = 1
    for number, line in enumerate(lines, start=1):
        if line.strip():
            if not run:
                start = number
            run.append(line)
        elif run:
            yield start, "\n".join(run)
            run = []
    if run:
        yield start, "\n".join(run)
