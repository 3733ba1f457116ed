"""Attributes of fairseq's classes that are computed when they are read."""

from __future__ import annotations

from typing import Any, Callable


class AttributeUntilSet:
    """An attribute that is computed while an object has none of its own of that name.

    Parameters, buffers and modules of a torch module are not in the object itself: ``compute`` is
    asked before them.

    compute: object -> value. Where it raises AttributeError, the object's ``__getattr__`` is asked.
    """

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        self.compute = compute

    # without __set__: what is set is in the object, and is read from there
    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        """Return the attribute of an object, or this of the class."""
        return self if owner is None else self.compute(owner)
