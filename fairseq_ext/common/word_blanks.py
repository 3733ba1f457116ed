"""Texts whose words have no blanks between them, of which BLEU counts almost nothing."""

import re
from typing import Iterable

# Thai, Lao, Tibetan, Burmese, Khmer, kana and Chinese characters
UNDIVIDED = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)
# characters of such a script for each word; lines that are cut into words have about two
MANY = 5


def lacks_blanks(lines: Iterable[str]) -> bool:
    """Return True if a text is mostly in scripts without blanks, and is not cut into words."""
    text = " ".join(lines)
    characters = len(UNDIVIDED.findall(text))
    letters = sum(character.isalpha() for character in text)
    return 2 * characters > letters and characters > MANY * len(text.split())
