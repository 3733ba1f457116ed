"""--use-plasma-view without the plasma store, which pyarrow dropped in version 12.

The option keeps the indices of a data set in one place for all processes that load batches. Here
that place is a file for each array, which the processes map into memory.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Hashable

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    import numpy as np

DEFAULT_PATH = "/tmp/plasma"  # fairseq's default of --plasma-path


class SharedArray:
    """A read-only array in a file; pickled, it is the name of the file.

    Args:
        array: what is stored.
        split_path, hash_data: fairseq's name of the array, which a file of its own does not need.
        plasma_path: value of --plasma-path, with which the name of the file begins.

    The file is removed with the object that wrote it, or when its process ends. A process that is
    killed leaves it.
    """

    def __init__(
        self,
        array: np.ndarray[Any, Any],
        split_path: str,
        hash_data: Hashable,
        plasma_path: str | None = None,
    ) -> None:
        import numpy as np

        folder, prefix = os.path.split(plasma_path or DEFAULT_PATH)
        descriptor, self.path = tempfile.mkstemp(".npy", prefix + ".", folder or ".")
        self.path = os.path.abspath(self.path)
        self._remove = weakref.finalize(self, _remove, self.path, os.getpid())
        with os.fdopen(descriptor, "wb") as file:
            np.save(file, array)
        self._array: np.ndarray[Any, Any] | None = None

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The array, mapped from the file at the first access."""
        if self._array is None:
            import numpy as np

            self._array = np.load(self.path, mmap_mode="r")
        return self._array

    def __len__(self) -> int:
        return len(self.array)

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "_array": None}


def _remove(path: str, process: int) -> None:
    """Remove the file, in the process that wrote it: a fork ends with the same finalizers."""
    if os.getpid() == process and os.path.exists(path):
        os.remove(path)


def plasma_is_missing() -> str | None:
    """Return None if pyarrow has no plasma store, or is not installed; else that it has."""
    try:
        import pyarrow.plasma  # noqa: F401
    except ImportError:
        return None
    return "not needed: pyarrow has plasma"


@patch(
    "fairseq.data.plasma_utils",
    because="pyarrow 12 dropped the plasma store: --use-plasma-view ends in 'please run pip "
    "install pyarrow', whether it is installed or not",
    conditions=[plasma_is_missing],
)
def shared_arrays_are_files(module: PatchedModule) -> None:
    """Store arrays in files; start no server."""
    module.PlasmaView = SharedArray
    # fairseq-train logs the number of the server's process, and kills it in the end
    server = SimpleNamespace(pid=None, kill=lambda: None)
    module.PlasmaStore.start = staticmethod(lambda *args, **options: server)
