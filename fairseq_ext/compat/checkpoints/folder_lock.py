"""A lock that lets one training at a time write into a folder.

The lock is the kernel's: it ends with the process, however that ends. Processes that the training
starts do not inherit it. Nothing here imports fairseq or torch.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from typing import Iterator

from ..atomic_files import host_name

logger = logging.getLogger(__name__)

LOCK_FILE = ".training"
# errors of file systems without locks
UNSUPPORTED = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)

# lock files of this process; `termination_signals` removes them
locked: list[str] = []


@contextlib.contextmanager
def folder_lock(folder: str) -> Iterator[bool]:
    """Hold the lock of an existing folder; the value is False if its file system has no locks.

    Raises ValueError, with the process and host that hold the lock, when another process has it.
    A file system without locks is a warning.
    """
    path = os.path.join(folder, LOCK_FILE)
    descriptor = _acquire(path, folder)
    if descriptor is None:
        yield False
        return
    locked.append(path)
    try:
        yield True
    finally:
        locked.remove(path)
        # first the name, then the lock: a process that gets the lock of a file without a name
        # tries again
        with contextlib.suppress(OSError):
            os.unlink(path)
        os.close(descriptor)


def _acquire(path: str, folder: str) -> int | None:
    """Return the descriptor of the locked file; None if the file system has no locks."""
    import fcntl

    while True:
        # the name may go to another file between opening and locking: then it is all done again
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)  # another user may be next
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(descriptor, 300).decode(errors="replace").strip()
            os.close(descriptor)
            if error.errno in UNSUPPORTED:
                logger.warning(
                    f"{folder}: its file system has no locks ({error.strerror}); see to it that "
                    "no second training writes there"
                )
                return None
            raise ValueError(
                f"--save-dir {folder}: another training writes there ({holder or 'unknown'}); "
                "wait for its end, or name another folder"
            ) from error
        if _is_named(descriptor, path):
            os.ftruncate(descriptor, 0)  # an earlier holder, killed, has left its line
            os.write(descriptor, f"process {os.getpid()} on host {host_name()}\n".encode())
            return descriptor
        os.close(descriptor)


def _is_named(descriptor: int, path: str) -> bool:
    """Return True if the open file still has its name: its holder may just have removed it."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
