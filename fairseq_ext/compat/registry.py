"""The list of patches: what each is for, when it is needed, and what became of it.

A patch is a function decorated with `patch`. It is called with the module it changes, once, right
after that module was imported, and only if every version condition holds.
"""

import logging
import os
import sys
from typing import NamedTuple, Union

# patches not to apply, separated by commas: to find out whether one of them is the culprit
SWITCH = "FAIRSEQ_EXT_COMPAT_OFF"

logger = logging.getLogger(__name__)

BEFORE = "before"  # called with the module's name, before it is looked for
AFTER = "after"  # called with the module, after its code ran
AROUND = "around"  # called with a module's name, gives a context manager its code runs in

_PATCHES = []


class Status(NamedTuple):
    """What became of one patch in this process.

    name: the patch. needed_because: which version of what made it necessary.
    active: whether it changed something. reason: where it acts, or why it does not.
    """

    name: str
    needed_because: str
    active: bool
    reason: str


class Patch:
    """One patch: `function`, the modules it is for, its conditions, and its history."""

    def __init__(self, function, modules, because, conditions, moment):
        self.name = function.__name__
        self.function = function
        self.modules = modules
        self.because = because
        self.conditions = conditions
        self.moment = moment
        self.done = []  # names of the modules it was applied to
        self.failed = {}  # module name -> what went wrong

    def unmet(self):
        """Why the patch is not to be applied, in words; None if it is needed."""
        if self.name in os.environ.get(SWITCH, "").replace(",", " ").split():
            return f"switched off by {SWITCH}"
        for condition in self.conditions:
            words = condition()
            if words is not None:
                return words
        return None

    def concerns(self, module_name):
        """Whether the patch names this module, or for AROUND its top-level package."""
        if self.moment == AROUND:
            return module_name.partition(".")[0] in self.modules
        return module_name in self.modules

    def status(self):
        """This patch's `Status`."""
        if self.failed:
            reason = "; ".join(f"failed on {name}: {why}" for name, why in self.failed.items())
            return Status(self.name, self.because, False, reason)
        if self.done:
            shown = ", ".join(sorted(set(self.done))[:4])
            return Status(self.name, self.because, True, f"applied to {shown}")
        imported = [name for name in self.modules if name in sys.modules]
        if not imported:
            # conditions are not asked: they would import numpy or torch
            waiting = f"waits for the import of {self.modules[0]}"
            return Status(self.name, self.because, False, waiting)
        words = self.unmet() or f"{imported[0]} was imported before the patches were active"
        return Status(self.name, self.because, False, words)


def patch(*modules, because, conditions=(), moment=AFTER):
    """Decorator that adds a function to the patches.

    modules: full names of the modules it is for; for AROUND, top-level packages.
    because: which version made it necessary and what happens without it, in one sentence.
    conditions: callables without arguments; None means it holds, a sentence means it does not.
    """

    def register(function):
        _PATCHES.append(Patch(function, modules, because, tuple(conditions), moment))
        return function

    return register


def patches():
    """All patches, in the order of their definition."""
    return tuple(_PATCHES)


def wanted(module_name, moment):
    """The needed patches for a module at a moment (a list of Patch)."""
    return [
        each
        for each in _PATCHES
        if each.moment == moment and each.concerns(module_name) and each.unmet() is None
    ]


def apply(each, module_name, argument):
    """Call a patch and note the outcome.

    A fork or a later fairseq may lack what a patch changes; then the import goes on without the
    patch, a warning is logged, and `fairseq-ext doctor` reports it.
    """
    if module_name in each.done:
        return None
    try:
        result = each.function(argument)
    except (AttributeError, ImportError, KeyError, TypeError) as error:
        each.failed[module_name] = f"{type(error).__name__}: {error}"
        logger.warning("fairseq_ext: patch %s: %s", each.name, each.failed[module_name])
        return None
    each.done.append(module_name)
    return result


def status():
    """One `Status` per patch."""
    return [each.status() for each in _PATCHES]


Version = Union[str, int]


def installed(package):
    """Version of an importable package as (major, minor), read from the package itself."""
    module = sys.modules.get(package) or __import__(package)
    numbers = []
    for part in module.__version__.split(".")[:2]:
        digits = "".join(character for character in part if character.isdigit())
        numbers.append(int(digits or 0))
    return tuple(numbers)


def since(package, *version):
    """Condition: the package (or "python") has at least this version."""
    return _compare(package, version, lambda present: present >= version)


def until(package, *version):
    """Condition: the package (or "python") is older than this version."""
    return _compare(package, version, lambda present: present < version)


def _compare(package, version, holds):
    def condition():
        present = sys.version_info[:2] if package == "python" else installed(package)
        if holds(present):
            return None
        return f"not needed with {package} {'.'.join(map(str, present))}"

    return condition
