"""Starts the compatibility patches of fairseq_ext when fairseq is first imported.

On Python 3.11 and later `fairseq-train` dies while it imports fairseq, before it looks at
`--user-dir`; something has to act earlier. `zz_fairseq_ext.pth` imports this module at the start
of every Python process of the environment, so it imports nothing but `sys` and only leaves one
object in `sys.meta_path`. The patches (`fairseq_ext/compat`) are read when a package they are for
is first imported, without importing `fairseq_ext` itself, which needs fairseq.
"""

import sys

TYPE_CHECKING = False  # `typing` would be imported at the start of every Python process
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Sequence

# "examples": fairseq's scripts import each other by this name, some before fairseq itself
WATCHED_PACKAGES = frozenset(("fairseq", "fairseq_cli", "hydra", "antlr4", "examples"))
COMPAT_MODULE = "fairseq_ext.compat"


class DeferredFinder:
    """Meta-path finder that the patches' finder replaces at the first watched import."""

    @classmethod
    def find_spec(
        cls,
        fullname: str,
        path: "Sequence[str] | None" = None,
        target: "ModuleType | None" = None,
    ) -> "ModuleSpec | None":
        """Return the spec of the patches' finder for watched packages, None for all others."""
        if fullname.partition(".")[0] not in WATCHED_PACKAGES:
            return None
        if cls in sys.meta_path:
            sys.meta_path.remove(cls)
        return load_compat().activate().find_spec(fullname, path, target)


def load_compat() -> "ModuleType":
    """Return the module `fairseq_ext.compat`, loaded by path if it is not imported yet.

    A plain import would run `fairseq_ext/__init__.py`, which imports fairseq.
    """
    if COMPAT_MODULE not in sys.modules:
        import importlib.util
        import os

        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), *COMPAT_MODULE.split("."))
        spec = importlib.util.spec_from_file_location(
            COMPAT_MODULE,
            os.path.join(folder, "__init__.py"),
            submodule_search_locations=[folder],
        )
        assert spec is not None and spec.loader is not None  # a path gives both
        module = importlib.util.module_from_spec(spec)
        # under its real name: a later `import fairseq_ext.compat` gets this same module
        sys.modules[COMPAT_MODULE] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[COMPAT_MODULE]
            raise
    return sys.modules[COMPAT_MODULE]


def install() -> None:
    """Watch for the imports of the packages; a second call changes nothing."""
    if DeferredFinder not in sys.meta_path and COMPAT_MODULE not in sys.modules:
        sys.meta_path.insert(0, DeferredFinder)


install()
