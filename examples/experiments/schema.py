"""What a file of an experiment may hold: its keys, and which values each may have."""

import difflib
import reprlib
from pathlib import Path
from string import Template
from typing import Any, Callable, Iterator, Mapping, NamedTuple

from . import UsageError


class Kind(NamedTuple):
    """Values that a key may have. allowed: the same for the reader of an error."""

    is_valid: Callable[[Any], bool]
    allowed: str


def is_text(value: object) -> bool:
    """True for a string."""
    return isinstance(value, str)


def is_number(value: object) -> bool:
    """True for a number; true and false, which Python counts as numbers, are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_variable(value: object) -> bool:
    """True for what a command may hold."""
    return is_text(value) or is_number(value)


def is_list(value: object, *kinds: Callable[[Any], bool]) -> bool:
    """True for a list with an item of each kind."""
    return (
        isinstance(value, list)
        and len(value) == len(kinds)
        and all(is_valid(item) for is_valid, item in zip(kinds, value))
    )


def list_of(is_valid: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return the function that is True for a list of such items."""
    return lambda value: isinstance(value, list) and all(map(is_valid, value))


def table_of(is_valid: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return the function that is True for a table of such values."""
    return lambda value: isinstance(value, dict) and all(map(is_valid, value.values()))


TEXT = Kind(is_text, "text")
COMMANDS = Kind(is_text, "text with a command a line")
TABLE = Kind(lambda value: isinstance(value, dict), "a table")
VARIABLE = Kind(is_variable, "text or a number")
FILE: Mapping[str, Kind] = {
    "title": TEXT,
    "variables": TABLE,
    "data": TABLE,
    "systems": TABLE,
    "compare": Kind(
        list_of(lambda pair: is_list(pair, is_text, is_text)),
        'a list of pairs of labels such as ["stock", "dual"]',
    ),
    "published": Kind(
        list_of(lambda value: is_list(value, is_text, is_text, is_number)),
        'a list of values such as ["stock", "BLEU", 27.3]',
    ),
    "like": TEXT,
}
DATA: Mapping[str, Kind] = {
    "raw": Kind(list_of(is_text), "a list of names of files"),
    "commands": COMMANDS,
}
SYSTEM: Mapping[str, Kind] = {
    "train": COMMANDS,
    "evaluate": COMMANDS,
    "needs": Kind(list_of(is_text), "a list of names of systems"),
    "seeds": Kind(lambda value: is_number(value) and value in (1, 2), "1 or 2"),
    "label": TEXT,
    "fields": Kind(table_of(is_text), "a table of texts"),
    "like": TEXT,
    "each": Kind(table_of(list_of(is_variable)), "a table of lists of texts or numbers"),
}


def check(table: Mapping[str, Any], kinds: Mapping[str, Kind], where: str) -> None:
    """Raise UsageError for a key that would do nothing, and for a value of another kind."""
    for key, value in table.items():
        if key not in kinds:
            raise UsageError(f"{where}: {key}; allowed: {', '.join(sorted(kinds))}")
        if not kinds[key].is_valid(value):
            raise UsageError(
                f"{where}: {key} = {reprlib.repr(value)}; allowed: {kinds[key].allowed}"
            )


def check_file(content: Mapping[str, Any], path: Path) -> None:
    """Raise UsageError with file, table, key and value for what is not allowed in a file."""
    check(content, FILE, str(path))
    check(content.get("data", {}), DATA, f"{path}: [data]")
    variables, systems = content.get("variables", {}), content.get("systems", {})
    check(variables, dict.fromkeys(variables, VARIABLE), f"{path}: [variables]")
    check(systems, dict.fromkeys(systems, TABLE), f"{path}: [systems]")
    for name, table in systems.items():
        of_system = {key: VARIABLE for key in table if key.isupper()}
        check(table, {**SYSTEM, **of_system}, f"{path}: [systems.{name}]")


def check_use(content: Mapping[str, Any], whole: Mapping[str, Any], path: Path) -> None:
    """Raise UsageError for a variable of a file that nothing uses, such as one with a typing error.

    content: what the file itself says. whole: with what it takes from the one that it is `like`.
    """
    used = {
        match.group("named") or match.group("braced")
        for text in texts_in([whole.get(part) for part in FILE])
        for match in Template.pattern.finditer(text)
    } - {None}
    places = {"variables": content.get("variables", {})}
    places.update({f"systems.{name}": table for name, table in content.get("systems", {}).items()})
    for place, table in places.items():
        for name in table:
            if name not in used and (place == "variables" or name.isupper()):
                allowed = difflib.get_close_matches(name.upper(), used, n=3) or sorted(used)
                raise UsageError(
                    f"{path}: [{place}]: {name}: no command uses it; allowed: {', '.join(allowed)}"
                )


def texts_in(value: object) -> Iterator[str]:
    """Yield the strings of a value, of its items and of the keys and values of its tables."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from (*texts_in(key), *texts_in(item))
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)
