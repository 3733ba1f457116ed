"""A stand-in for a module in which a few names differ, seen by one module only."""

import types


class Shadow(types.ModuleType):
    """Has the given names; everything else is read from the original at every access."""

    def __init__(self, original, **names):
        super().__init__(original.__name__, original.__doc__)
        self.__dict__.update(names)
        self.__dict__["__shadowed__"] = original

    def __getattr__(self, name):
        return getattr(self.__dict__["__shadowed__"], name)

    def __dir__(self):
        return sorted(set(super().__dir__()) | set(dir(self.__dict__["__shadowed__"])))


def shadow(module, variable, **names):
    """Let `module` see names of the module in its global `variable` differently.

    The names add up when called again for the same module. Raises AttributeError when the module
    has no such global.
    """
    present = getattr(module, variable)
    if isinstance(present, Shadow):
        present.__dict__.update(names)
    else:
        setattr(module, variable, Shadow(present, **names))
