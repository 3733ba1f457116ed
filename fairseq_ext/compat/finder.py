"""Import hook: runs the patches before, around and after the modules they are for."""

import contextlib
import importlib.machinery
import sys

from .registry import AFTER, AROUND, BEFORE, apply, patches, wanted

PACKAGES = frozenset(("fairseq", "fairseq_cli", "hydra", "antlr4"))


class PatchingLoader(importlib.machinery.SourceFileLoader):
    """Loads a source file as Python would, inside and followed by the patches for it."""

    def exec_module(self, module):
        """Run the module's code, then the patches that want to see it."""
        name = module.__spec__.name
        with contextlib.ExitStack() as stack:
            for each in wanted(name, AROUND):
                stack.enter_context(each.function(name))
                each.done.append(name.partition(".")[0])
            super().exec_module(module)
        for each in wanted(name, AFTER):
            apply(each, name, module)


class PatchingFinder:
    """Meta-path finder that lets the other finders find and only replaces the loader."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):
        """The spec of a module of PACKAGES; None for every other module."""
        if fullname.partition(".")[0] not in PACKAGES:
            return None
        for each in wanted(fullname, BEFORE):
            apply(each, fullname, fullname)
        spec = _find_elsewhere(fullname, path, target)
        # anything but a plain source file (extension modules, namespace packages, archives) is
        # loaded by what found it
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = PatchingLoader(spec.loader.name, spec.loader.path)
        return spec


def _find_elsewhere(fullname, path, target):
    for finder in list(sys.meta_path):
        if finder is PatchingFinder or not hasattr(finder, "find_spec"):
            continue
        spec = finder.find_spec(fullname, path, target)
        if spec is not None:
            return spec
    return None


def install():
    """Put the finder first; patch the modules that are imported already. Returns the finder."""
    for finder in sys.meta_path:
        # another copy of this package (a second checkout given as --user-dir) may be active
        if getattr(finder, "__name__", "") == PatchingFinder.__name__:
            return finder
    sys.meta_path.insert(0, PatchingFinder)
    for each in patches():
        # conditions import numpy or torch to see their versions: only for what is there already
        present = [name for name in each.modules if name in sys.modules]
        if present and each.moment == AFTER and each.unmet() is None:
            for name in present:
                apply(each, name, sys.modules[name])
    return PatchingFinder
