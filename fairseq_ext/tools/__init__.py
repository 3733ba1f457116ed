"""The sub-commands of `fairseq-ext`, one module each, and what they share.

A module has `add_arguments(parser)` and `run(args) -> exit status`; `fairseq_ext/__main__.py`
imports the chosen one only. Nothing here imports torch or fairseq.
"""

import contextlib
import os
import tempfile
from pathlib import Path


class UsageError(Exception):
    """The user asked for something impossible; the message names option, value, what is allowed."""


@contextlib.contextmanager
def atomic_path(path):
    """Yield a temporary file beside `path` that becomes `path` when the block ends well.

    An error inside the block leaves an existing `path` as it was and removes the temporary file.
    Raises UsageError when the folder of `path` does not exist, and when `path` is one.
    """
    path = Path(path)
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise UsageError(f"cannot write {path}: {path.parent} is not a folder")
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    try:
        yield Path(name)
        # mkstemp makes files that only the owner reads; give what open() would have given
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    finally:
        if os.path.exists(name):
            os.unlink(name)
