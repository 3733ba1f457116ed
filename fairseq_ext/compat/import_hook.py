"""Import hook: runs the patches before and after the modules they are for."""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import sys
from types import CodeType, ModuleType
from typing import Any, Iterable, Sequence

from .patch_registry import AFTER, BEFORE, all_patches, apply_patch, needed_patches

# "examples": of a clone of fairseq, which its modules import by this name. "sacrebleu": once the
# patches are active, for plugins; an import of it alone does not start them
PATCHED_PACKAGES = frozenset(("fairseq", "fairseq_cli", "hydra", "antlr4", "examples", "sacrebleu"))
EXAMPLES = "examples"


class PatchingLoader(importlib.machinery.SourceFileLoader):
    """Loads a source file as Python would, followed by the patches for it."""

    _is_loading = False

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code, then apply its AFTER patches."""
        name = module.__name__ if module.__spec__ is None else module.__spec__.name
        self._is_loading = True
        try:
            super().exec_module(module)
        finally:
            self._is_loading = False
        _patch_loaded(name, module)

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the module's code; for `python -m`, code that runs the patched module's command.

        `python -m` runs the code of a module as `__main__` without loading the module, and so
        without its patches. Only runpy calls this from outside; `exec_module` calls it while
        `_is_loading` is set.
        """
        is_command = fullname.startswith("fairseq_cli.") and not self._is_loading
        if is_command and hasattr(importlib.import_module(fullname), "cli_main"):
            # compiled in the place of the file: `python -m` would
            # run unpatched code under another name
            lines = f"from {fullname} import *\nfrom {fullname} import cli_main\n"
            lines += 'if __name__ == "__main__":\n    cli_main()\n'
            return compile(lines, f"<python -m {fullname}>", "exec")
        if not self._is_loading and EXAMPLES in fullname.split(".")[:2] and _is_patched(fullname):
            main = _main_lines(self.get_data(self.path))
            if main:
                importlib.import_module(fullname)
                lines = f"from {fullname} import *\n{main}"
                return compile(lines, f"<python -m {fullname}>", "exec")
        return super().get_code(fullname)


def _is_patched(name: str) -> bool:
    """Return whether a patch acts on a module after its code ran."""
    return any(patch.moment == AFTER and patch.concerns(name) for patch in all_patches())


def _main_lines(source: bytes) -> str:
    """Return what a file does as the main program: its `if __name__ == "__main__"`, or ""."""
    conditions = [item for item in ast.parse(source).body if isinstance(item, ast.If)]
    main = [item for item in conditions if ast.unparse(item.test).startswith("__name__ ==")]
    return "\n".join(map(ast.unparse, main))


class OtherLoader(importlib.abc.Loader):
    """Loads a module as another loader does, followed by the patches for it."""

    def __init__(self, loader: Any, name: str) -> None:
        self._loader = loader
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)  # such as get_data, which resources are read with

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Return what the other loader makes for the spec."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code, then apply its AFTER patches."""
        self._loader.exec_module(module)
        _patch_loaded(self._name, module)


def _patch_loaded(name: str, module: ModuleType) -> None:
    """Apply the patches of a module whose code has run; who imports it waits for them too."""
    for patch in needed_patches(name, AFTER):
        apply_patch(patch, name, module, code_has_run=True)


class PatchingFinder:
    """Meta-path finder that delegates to the other finders and replaces only the loader."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module of PATCHED_PACKAGES; None for every other module."""
        if fullname.partition(".")[0] not in PATCHED_PACKAGES:
            return None
        # such a patch may decide what the other finders find
        for patch in needed_patches(fullname, BEFORE):
            apply_patch(patch, fullname, fullname)
        spec = _find_elsewhere(fullname, path, target)
        if fullname == EXAMPLES and (spec is None or spec.loader is None):
            spec = _with_examples_of_fairseq(spec)
        loader = None if spec is None else spec.loader
        if spec is None or loader is None:  # not found, or a namespace package
            return spec
        if type(loader) is importlib.machinery.SourceFileLoader:
            spec.loader = PatchingLoader(loader.name, loader.path)
        elif _is_patched(fullname):
            # pytest rewrites the assertions of hydra, which has a plugin for it
            spec.loader = OtherLoader(loader, fullname)
        return spec


def _with_examples_of_fairseq(
    spec: importlib.machinery.ModuleSpec | None,
) -> importlib.machinery.ModuleSpec | None:
    """Return the spec of a package `examples` that has the examples of the installed fairseq.

    They import each other as `examples.NAME`, as in a clone; an installation has them in
    `fairseq/examples`. A folder `examples` of another project comes first.

    Args:
        spec: that of such a folder, without __init__.py; None if there is none.
    """
    package = importlib.util.find_spec("fairseq")
    folders = None if package is None else package.submodule_search_locations
    stock = None if not folders else importlib.machinery.PathFinder.find_spec(EXAMPLES, folders)
    if spec is None or stock is None:
        return stock or spec
    merged = importlib.machinery.ModuleSpec(EXAMPLES, None, is_package=True)
    places: Any = JoinedPath(
        spec.submodule_search_locations or (), stock.submodule_search_locations or ()
    )
    merged.submodule_search_locations = places
    return merged


class JoinedPath(Sequence[str]):
    """The folders of a package that are in several lists, each of which may change later."""

    def __init__(self, *lists: Iterable[str]) -> None:
        self._lists = lists

    def _folders(self) -> list[str]:
        return list(itertools.chain.from_iterable(self._lists))

    def __getitem__(self, index: Any) -> Any:
        return self._folders()[index]

    def __len__(self) -> int:
        return len(self._folders())


def _find_elsewhere(
    fullname: str, path: Sequence[str] | None, target: ModuleType | None
) -> importlib.machinery.ModuleSpec | None:
    """Return the spec that the first of the other finders gives, None if none does."""
    # a copy of the list: a finder may change it, as the start-up hook does when it gives way
    for finder in list(sys.meta_path):
        if finder is PatchingFinder or not hasattr(finder, "find_spec"):
            continue
        spec = finder.find_spec(fullname, path, target)
        if spec is not None:
            return spec
    return None


def install() -> type[PatchingFinder]:
    """Put the finder first, patch the modules that are imported already; return the finder."""
    for finder in sys.meta_path:
        # another copy of this package (a second checkout given as --user-dir) may be active
        if getattr(finder, "__name__", "") == PatchingFinder.__name__:
            return finder  # type: ignore[return-value]
    sys.meta_path.insert(0, PatchingFinder)  # first: another finder would return a plain loader
    for patch in all_patches():
        # conditions import numpy or torch to read their versions: evaluate them only for patches
        # of modules that are there already
        present = [name for name in patch.modules if name in sys.modules]
        if present and patch.moment == AFTER and patch.unmet_condition() is None:
            for name in present:
                apply_patch(patch, name, sys.modules[name])
    return PatchingFinder
