"""Annotated corpora as pairs of plain lines, and back: one module for each format.

A module NAME has

    blocks(lines)               (number of its first line from 1, its text) of each item of a file
    forward(text, **options)    (source line, target line); None for an item without a sentence
    backward(source, target, **options)     the text of one item in the format of the corpus
    of_file(lines)              where items must agree within a file: the options of forward for it

All raise ``Malformed``. A source line is the sentence, words separated by spaces. Nothing here
imports fairseq or torch.
"""

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


def paragraphs(lines):
    """(number of the first line from 1, text) of each run of lines that are not blank."""
    found, start = [], 1
    for number, line in enumerate(lines, start=1):
        if line.strip():
            if not found:
                start = number
            found.append(line)
        elif found:
            yield start, "\n".join(found)
            found = []
    if found:
        yield start, "\n".join(found)
