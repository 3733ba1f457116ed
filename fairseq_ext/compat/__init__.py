"""What unmodified fairseq 0.12.2 needs on current versions of Python, torch, numpy and hydra.

Nothing here is about any of our systems. Importing this package imports neither fairseq nor torch.
`docs/compat.md` lists the patches; each is a function with its reason in one of the files here.

The start-up hook loads this package while `fairseq_ext` itself is not imported yet. That is why no
file here says `from . import name`: such a statement imports the outer package first.
"""

import importlib
import importlib.util
import sys

from .finder import install
from .registry import status as _status

THEMES = (
    "dataclass_defaults",
    "hydra_support",
    "numpy_names",
    "encoder_layers",
    "checkpoints",
    "precision",
    "distributed",
    "scoring",
    "quiet",
)

for _theme in THEMES:
    importlib.import_module(f"{__name__}.{_theme}")  # fills the registry


def activate():
    """Make the patches act on every fairseq module, imported already or later.

    Idempotent. Returns the meta-path finder that does the work.
    """
    return install()


def require_fairseq():
    """Raise ModuleNotFoundError with the remedy if fairseq is not installed."""
    if importlib.util.find_spec("fairseq") is None:
        raise ModuleNotFoundError(
            f"fairseq is not installed for {sys.executable}. Install it without its own "
            "requirements, which pip 24.1 and later refuse: "
            "python -m pip install --no-deps fairseq==0.12.2",
            name="fairseq",
        )


def status():
    """What became of each patch in this process: a list of `registry.Status`.

    Fields: name, needed_because, active (bool), reason.
    """
    return _status()
