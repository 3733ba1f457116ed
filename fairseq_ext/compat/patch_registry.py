"""The registry of patches: what each is for, when it is needed, and what became of it.

A patch is a function decorated with `patch`. It is called with the module that it changes, once,
right after that module was imported, and only if every version condition holds.
"""

from __future__ import annotations

import itertools
import logging
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Sequence, TypeVar

# environment variable: names of patches that are not applied, separated by commas
OFF_VARIABLE = "FAIRSEQ_EXT_COMPAT_OFF"

logger = logging.getLogger(__name__)

BEFORE = "before"  # called with the module's name, before the module is searched for
AFTER = "after"  # called with the module, after its code ran

if TYPE_CHECKING:

    class PatchedModule(ModuleType):
        """A module of fairseq, hydra or antlr4 whose names a patch reads and replaces."""

        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: Any) -> None: ...

else:
    PatchedModule = ModuleType

# returns None if the condition holds, otherwise a sentence that says why it does not
Condition = Callable[[], "str | None"]
PatchFunction = TypeVar("PatchFunction", bound=Callable[..., Any])

_PATCHES: list[Patch] = []  # in the order of PATCH_MODULES: the later wraps the earlier


class Status(NamedTuple):
    """What became of one patch in this process.

    name: the patch. needed_because: which version of what made it necessary.
    active: True if it changed something. reason: where it acts, or why it does not.
    """

    name: str
    needed_because: str
    active: bool
    reason: str


class Patch:
    """One patch: its function, the modules it is for, its conditions, and its history.

    Attributes:
        applied_to: names of the modules that it was applied to.
        failures: {module name: what went wrong}.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        modules: tuple[str, ...],
        because: str,
        conditions: tuple[Condition, ...],
        moment: str,
        for_older: bool = False,
    ) -> None:
        self.name = function.__name__
        self.function = function
        self.modules = modules
        self.because = because
        self.conditions = conditions
        self.moment = moment
        packages = {name.partition(".")[0] for name in modules}
        self.for_older = for_older or not packages & {"fairseq", "fairseq_cli", "examples"}
        self.applied_to: list[str] = []
        self.failures: dict[str, str] = {}

    def unmet_condition(self) -> str | None:
        """Return why the patch must not be applied, as a sentence; None if it is needed."""
        if self.name in os.environ.get(OFF_VARIABLE, "").replace(",", " ").split():
            return f"switched off by {OFF_VARIABLE}"
        if not self.for_older and has_older_fairseq():
            return "for fairseq 0.12, and this fairseq is older"
        for condition in self.conditions:
            reason = condition()
            if reason is not None:
                return reason
        return None

    def concerns(self, module_name: str) -> bool:
        """Return True if the patch names this module."""
        return module_name in self.modules

    def status(self) -> Status:
        """Return what became of this patch."""
        if self.failures:
            reason = "; ".join(f"failed on {name}: {why}" for name, why in self.failures.items())
            return Status(self.name, self.because, False, reason)
        if self.applied_to:
            names = ", ".join(sorted(set(self.applied_to))[:4])
            return Status(self.name, self.because, True, f"applied to {names}")
        imported = [name for name in self.modules if name in sys.modules]
        if not imported:
            # the conditions are not evaluated: they would import numpy or torch
            waiting = f"waits for the import of {self.modules[0]}"
            return Status(self.name, self.because, False, waiting)
        late = f"{imported[0]} was imported before the patches were active"
        return Status(self.name, self.because, False, self.unmet_condition() or late)


def has_older_fairseq() -> bool:
    """True if the fairseq that is imported is a fork of 0.10 or earlier.

    Patches are written for the code of 0.12, and some that seem to fit break older code. The
    models of 0.12 and of the main branch since 2021 have a package `transformer`.
    """
    folders = list(getattr(sys.modules.get("fairseq"), "__path__", ()))
    models = [os.path.join(folder, "models") for folder in folders]
    models = [folder for folder in models if os.path.isdir(folder)]
    return bool(models) and not any(
        os.path.isdir(os.path.join(folder, "transformer")) for folder in models
    )


def patch(
    *modules: str,
    because: str,
    conditions: Sequence[Condition] = (),
    moment: str = AFTER,
    for_older: bool = False,
) -> Callable[[PatchFunction], PatchFunction]:
    """Return a decorator that adds a function to the patches.

    Args:
        modules: full names of the modules it is for.
        because: which version made it necessary and what happens without it, in one sentence.
        conditions: all must hold in this process, or the patch is not applied.
        moment: BEFORE or AFTER.
        for_older: True if it fits forks of fairseq before 0.12, too.
    """

    def register(function: PatchFunction) -> PatchFunction:
        added = Patch(function, modules, because, tuple(conditions), moment, for_older)
        _PATCHES.append(added)
        return function

    return register


def put_in_order(modules: Sequence[str]) -> None:
    """Give the patches the order of the modules that define them, and within each that of its file.

    They were added in the order of imports, in which a module comes before those that import it.
    """
    places = {name: place for place, name in enumerate(modules)}
    _PATCHES.sort(key=lambda patch: places[patch.function.__module__])


def all_patches() -> tuple[Patch, ...]:
    """Return all patches, in the order in which they are applied."""
    return tuple(_PATCHES)


def needed_patches(module_name: str, moment: str) -> list[Patch]:
    """Return the patches for a module at a moment whose conditions hold."""
    return [
        patch
        for patch in _PATCHES
        if patch.moment == moment
        and patch.concerns(module_name)
        and patch.unmet_condition() is None
    ]


def apply_patch(
    patch: Patch, module_name: str, argument: ModuleType | str, code_has_run: bool = False
) -> None:
    """Call a patch once per run of a module's code and record the outcome.

    A fork or a later fairseq may lack what a patch changes. Then the import continues without the
    patch, a warning is logged, and `fairseq-ext doctor` reports it.

    code_has_run: just now, so that the module has what fairseq defines, also where it was patched
        before: importlib.reload runs it again.
    """
    # an import that fails is tried again, and each time its BEFORE patches too
    if module_name in patch.applied_to and patch.moment != BEFORE and not code_has_run:
        return
    try:
        patch.function(argument)
    except ModuleNotFoundError as error:
        if patch.moment != BEFORE or error.name != module_name:
            _note_failure(patch, module_name, error)
            return
        patch.applied_to.append(module_name)
        raise  # the patch says why there is no such module
    # what code that a patch does not fit raises
    except (AttributeError, ImportError, KeyError, TypeError) as error:
        _note_failure(patch, module_name, error)
        return
    patch.applied_to.append(module_name)


def _note_failure(patch: Patch, module_name: str, error: Exception) -> None:
    """Record and log that a patch does not fit."""
    patch.failures[module_name] = f"{type(error).__name__}: {error}"
    logger.warning("fairseq_ext: patch %s: %s", patch.name, patch.failures[module_name])


def status() -> list[Status]:
    """Return what became of each patch in this process."""
    return [patch.status() for patch in _PATCHES]


def installed_version(package: str) -> tuple[int, ...]:
    """Return (major, minor) of an importable package, read from its `__version__`."""
    module = sys.modules.get(package) or __import__(package)
    parts = module.__version__.split(".")[:2]
    # "0a0" and "13rc1" are versions too
    return tuple(int("".join(itertools.takewhile(str.isdigit, part)) or 0) for part in parts)


def since(package: str, *version: int) -> Condition:
    """Return the condition that the package (or "python") has at least this version."""
    return _version_condition(package, lambda present: present >= version)


def until(package: str, *version: int) -> Condition:
    """Return the condition that the package (or "python") is older than this version."""
    return _version_condition(package, lambda present: present < version)


def _version_condition(package: str, holds: Callable[[tuple[int, ...]], bool]) -> Condition:
    """Return the condition that `holds` is true of the (major, minor) of a package."""

    def condition() -> str | None:
        is_python = package == "python"  # which has no module to be asked
        present = tuple(sys.version_info[:2]) if is_python else installed_version(package)
        if holds(present):
            return None
        return f"not needed with {package} {'.'.join(map(str, present))}"

    return condition
