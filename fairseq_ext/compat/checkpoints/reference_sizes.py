"""Whether a configuration stays small when every reference is replaced by what it refers to.

Ten lists of ten references, each to the list before, become ten billion values when omegaconf
resolves them. So do lists that a pickle holds once and names many times, which omegaconf copies.
The values are counted without making them.
"""

from __future__ import annotations

from typing import Any, Iterator, Tuple

from .interpolations import MAX_VALUES, REFERENCE

CHARACTERS = 64  # of a text that count as one value
Containers = Tuple[Any, ...]  # around a value, the root first


class _TooLargeError(Exception):
    """More than MAX_VALUES values were counted."""


class _Counter:
    """Counts the values of one configuration."""

    def __init__(self) -> None:
        self._left = MAX_VALUES
        # (id of the container, text) of the references that are being followed
        self._followed: set[tuple[int, str]] = set()

    def count(self, value: Any, around: Containers) -> None:
        """Count a value and all that it holds or refers to; raise _TooLargeError above the limit.

        A reference may mean what it would with any container around it as the root: fairseq makes
        configurations of parts.
        """
        value = _content(value)
        self._left -= 1 + (len(value) // CHARACTERS if isinstance(value, str) else 0)
        if self._left < 0:
            raise _TooLargeError
        if isinstance(value, str):
            for path in REFERENCE.findall(value) if around else ():
                self._follow(path[2:-1], around)
            return
        container = _container(value)
        children = container.values() if isinstance(container, dict) else container
        for child in children or ():
            self.count(child, (*around, value))

    def _follow(self, path: str, around: Containers) -> None:
        """Count what a reference may mean; a reference to itself, which omegaconf refuses, once."""
        place = (id(around[-1]), path)
        if place not in self._followed:
            self._followed.add(place)
            for target, containers in _targets(path, around):
                self.count(target, containers)
            self._followed.discard(place)


def multiplies(configuration: Any) -> bool:
    """Return True if a configuration has more than MAX_VALUES values when it is resolved.

    Args:
        configuration: a dict, list, Namespace or object of omegaconf.
    """
    try:
        _Counter().count(configuration, ())
    except (_TooLargeError, RecursionError):
        return True
    return False


def _targets(path: str, around: Containers) -> Iterator[tuple[Any, Containers]]:
    """Yield the values that a reference may mean, each with the containers around it."""
    names = path.replace("[", ".").replace("]", "").split(".")
    dots = len(path) - len(path.lstrip("."))
    # one dot begins in the container of the reference, each further dot in the one around it
    last = len(around) - 1
    roots = [last - dots + 1] if dots else range(last + 1)
    for root in roots:
        value, containers = around[max(root, 0)], around[: max(root, 0)]
        for name in filter(None, names):
            children = _named(_container(value), name)
            if not children:
                break
            value, containers = _content(children[0]), (*containers, value)
        else:
            yield value, containers


def _content(value: Any) -> Any:
    """Return the text or number of a node of omegaconf, and everything else as it is."""
    if type(value).__module__.partition(".")[0] != "omegaconf":
        return value
    # not through its methods, which resolve
    attributes = vars(value)
    content = attributes.get("_content", attributes.get("_val"))
    # a container may be a reference as a whole
    return value if isinstance(content, (dict, list)) else content


def _named(container: Any, name: str) -> list[Any]:
    """Return [the value of this name], of a list that of this number; [] where there is none."""
    if isinstance(container, dict) and name in container:
        return [container[name]]
    try:
        number = int(name)
        return [container[number]] if isinstance(container, (dict, list, tuple)) else []
    except (ValueError, LookupError):
        return []


def _container(value: Any) -> Any:
    """Return the dict, list, tuple or set with the content of a container; None for the rest."""
    package = type(value).__module__.partition(".")[0]
    if package == "omegaconf":
        value = vars(value).get("_content")
    elif package == "argparse":
        value = vars(value)
    return value if isinstance(value, (dict, list, tuple, set, frozenset)) else None
