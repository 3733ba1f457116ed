"""Starts the compatibility patches of fairseq_ext when fairseq is first imported.

On Python 3.11 and later `fairseq-train` dies while it imports fairseq, before it looks at
`--user-dir`; something has to act earlier. `zz_fairseq_ext.pth` imports this module at the start
of every Python process of the environment, so it imports nothing but `sys` and only leaves one
object in `sys.meta_path`. The patches (`fairseq_ext/compat`) are read when a package they are for
is first imported, without importing `fairseq_ext` itself, which needs fairseq.
"""

import sys

WATCHED = frozenset(("fairseq", "fairseq_cli", "hydra", "antlr4"))
COMPAT = "fairseq_ext.compat"


class Waiting:
    """Meta-path finder that gives way to the one of the patches at the first watched import."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        """Find nothing, except for watched packages: those the patches' finder finds."""
        if fullname.partition(".")[0] not in WATCHED:
            return None
        if cls in sys.meta_path:
            sys.meta_path.remove(cls)
        return load_compat().activate().find_spec(fullname, path, target)


def load_compat():
    """The module `fairseq_ext.compat`, loaded by path when its package is not imported yet."""
    if COMPAT not in sys.modules:
        import importlib.util
        import os

        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), *COMPAT.split("."))
        spec = importlib.util.spec_from_file_location(
            COMPAT,
            os.path.join(folder, "__init__.py"),
            submodule_search_locations=[folder],
        )
        module = importlib.util.module_from_spec(spec)
        # under its real name: a later `import fairseq_ext.compat` gets this same module
        sys.modules[COMPAT] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[COMPAT]
            raise
    return sys.modules[COMPAT]


def install():
    """Watch for the packages; a second call changes nothing."""
    if Waiting not in sys.meta_path and COMPAT not in sys.modules:
        sys.meta_path.insert(0, Waiting)


install()
