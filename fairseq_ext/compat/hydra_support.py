"""hydra-core 1.0 and its parser (antlr4 4.8) on Python 3.12 and 3.13."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import types
import typing
from typing import Any, Iterator

from .patch_registry import BEFORE, PatchedModule, patch, since, until


@patch(
    "hydra.core.plugins",
    because="Python 3.12 dropped find_module from importers, with which hydra-core < 1.1 looks "
    "for its plugins: 'FileFinder' object has no attribute 'find_module'",
    conditions=[since("python", 3, 12), until("hydra", 1, 1)],
)
def hydra_plugin_scan(module: PatchedModule) -> None:
    """Give hydra's scan importers that still have `find_module(name).load_module(name)`."""
    loader = types.SimpleNamespace(load_module=importlib.import_module)
    importer: Any = types.SimpleNamespace(find_module=lambda name: loader)

    def walk_packages(*args: Any, **kwargs: Any) -> Iterator[pkgutil.ModuleInfo]:
        for info in pkgutil.walk_packages(*args, **kwargs):
            yield pkgutil.ModuleInfo(importer, info.name, info.ispkg)

    module.pkgutil = types.SimpleNamespace(walk_packages=walk_packages)


@patch(
    "antlr4",
    because="Python 3.13 dropped typing.io, from which antlr4 4.8 and hydra-core 1.0 import TextIO",
    conditions=[since("python", 3, 13)],
    moment=BEFORE,
)
def typing_io(module_name: str) -> None:
    """Provide the module `typing.io` with the three names it had."""
    if "typing.io" not in sys.modules:
        module = types.ModuleType("typing.io", "The file types of typing, as until Python 3.12.")
        for name in ("IO", "TextIO", "BinaryIO"):
            setattr(module, name, getattr(typing, name))
        sys.modules["typing.io"] = module
