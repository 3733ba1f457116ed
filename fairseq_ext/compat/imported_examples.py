"""The modules of fairseq's examples: their names, and those that were imported under any name."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import ModuleType

# how the examples are imported: from an installation, and from a clone of fairseq
EXAMPLE_PACKAGES = ("fairseq.examples", "examples")


def modules_of_examples(*names: str) -> tuple[str, ...]:
    """Return the full names of modules, given below the folder of examples, for `patch`."""
    return tuple(f"{package}.{name}" for package in EXAMPLE_PACKAGES for name in names)


def imported_copies(names: Iterable[str]) -> Iterator[tuple[str, ModuleType]]:
    """Yield each imported module whose file is that of an example's module, or a copy of it.

    names: the modules below the folder of examples, such as `latent_depth.latent_depth_src.loss`.
    A name comes with every module of it.
    """
    by_last_part: dict[str, list[str]] = {}
    for name in names:
        by_last_part.setdefault(name.rpartition(".")[2], []).append(name)
    # by name first: there are thousands of modules; a copy, since other threads may import
    for full_name, module in sys.modules.copy().items():
        for name in by_last_part.get(full_name.rpartition(".")[2], ()):
            if isinstance(module, ModuleType):
                file = str(module.__dict__.get("__file__")).replace("\\", "/")
                if file.endswith(f"/{name.replace('.', '/')}.py"):
                    yield name, module
