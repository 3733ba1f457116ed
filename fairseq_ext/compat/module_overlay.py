"""A view of a module in which a few names differ, seen by one other module only."""

from __future__ import annotations

from types import ModuleType
from typing import Any


class ModuleOverlay(ModuleType):
    """A module with the given names; everything else is read from the original at every access."""

    def __init__(self, original: ModuleType, **names: Any) -> None:
        super().__init__(original.__name__, original.__doc__)
        self.__dict__.update(names)
        # in the dictionary itself, where ``__getattr__`` finds it without being asked
        self.__dict__["__original__"] = original

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["__original__"], name)

    def __dir__(self) -> list[str]:
        return sorted(set(super().__dir__()) | set(dir(self.__dict__["__original__"])))


def overlay_names(module: ModuleType, variable: str, **names: Any) -> None:
    """Replace names of the module in the global `variable` of `module`, for `module` alone.

    The names add up when called again for the same module. Raises AttributeError when the module
    has no such global.
    """
    present = getattr(module, variable)
    if isinstance(present, ModuleOverlay):
        # names add up in one overlay, in place of an overlay of an overlay
        present.__dict__.update(names)
    else:
        setattr(module, variable, ModuleOverlay(present, **names))


def overlaid(module: ModuleType, variable: str, name: str) -> Any | None:
    """Return what `overlay_names` has put in the place of a name so far; None if nothing."""
    present = getattr(module, variable)
    return vars(present).get(name) if isinstance(present, ModuleOverlay) else None
