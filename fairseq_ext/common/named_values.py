"""Options that hold several entries: "de,en" and "de=a.pt,en=b.pt"."""

from typing import List, NamedTuple, Optional


class NamedValue(NamedTuple):
    """An entry NAME=VALUE of an option.

    text: as it was given. name, value: without the blanks around them; an entry without "=" has the
    value "".
    """

    text: str
    name: str
    value: str


def entries(text: Optional[str]) -> List[str]:
    """Return the entries of "a, b"; blanks around them and empty ones are left out."""
    return [entry.strip() for entry in (text or "").split(",") if entry.strip()]


def named_values(text: Optional[str]) -> List[NamedValue]:
    """Return the entries of "a=1, b=2"."""
    values = []
    for entry in entries(text):
        # a value, such as a path, may hold "=": only the first one ends the name
        name, _, value = entry.partition("=")
        values.append(NamedValue(entry, name.strip(), value.strip()))
    return values
