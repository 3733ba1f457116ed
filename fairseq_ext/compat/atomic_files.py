"""Atomic writes: a file or a folder is there whole or not at all.

A file is written beside its place under a hidden name, flushed to the disk and renamed. What a
killed process left bears the names of its host and process; `remove_leftovers` removes it.
Nothing here imports fairseq or torch.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import signal
import socket
import tempfile
import threading
from typing import IO, BinaryIO, Callable, Iterator, cast

# hidden names, which nothing that looks for checkpoints takes for one
LEFTOVER = re.compile(r"\.(?P<name>.+)\.(?P<host>[^.]+)\.(?P<pid>\d+)\.part")
# what fairseq alone leaves when it is killed while it writes
STOCK_LEFTOVER = re.compile(r".+\.pt\.tmp")
# of a full disk, a quota and a limit of the shell: Python's error says no file
NO_SPACE = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
# numpy's, without a number
UNWRITTEN = re.compile(r"\d+ requested and \d+ written")

# names of unfinished files and folders of this process; `termination_signals` removes them
unfinished: list[str] = []
# functions that remove what else is unfinished; it calls them, too
removers: list[Callable[[], object]] = []
# open files that stay where the process ends early, under names that say so
incomplete: list[IO[str]] = []


@contextlib.contextmanager
def signals_wait() -> Iterator[None]:
    """Let SIGTERM and Ctrl-C wait until the block has ended: steps that belong together."""
    came: list[int] = []
    replaced = {}
    if threading.current_thread() is threading.main_thread():  # where handlers can be set
        for number in (signal.SIGTERM, signal.SIGINT):
            replaced[number] = signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in replaced.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if came:
            os.kill(os.getpid(), came[0])


@contextlib.contextmanager
def removed_at_the_end(path: str) -> Iterator[None]:
    """Remove `path`, a file or a folder, when the block ends, or when a signal ends the process.

    What has been renamed meanwhile stays under its new name.
    """
    unfinished.append(path)  # before it exists: a signal may come at any moment
    try:
        yield
    finally:
        remove(path)
        unfinished.remove(path)


def remove(path: str) -> None:
    """Remove a file or a folder, if it is there."""
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    with contextlib.suppress(OSError):
        os.unlink(path)


def host_name() -> str:
    """Return the name of this machine, without its domain."""
    return socket.gethostname().partition(".")[0] or "localhost"


class ErrorRecordingFile:
    """A file that never fails: the first error stays in `error`, and the rest goes nowhere.

    torch.save would hide why a file has failed and, before torch 2.0, abort the process where a
    signal raises an exception meanwhile.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.error: BaseException | None = None

    def write(self, data: bytes) -> int:
        """Write bytes, unless there was an error, and return their number."""
        if self.error is None:
            with self:
                self.file.write(data)
        return memoryview(data).nbytes

    def flush(self) -> None:
        """Write what is buffered."""
        with self:
            self.file.flush()

    def __enter__(self) -> ErrorRecordingFile:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        """Keep the error, or the signal that came meanwhile; it is raised when all is written."""
        self.error = self.error or error
        return True


@contextlib.contextmanager
def open_for_torch(path: str) -> Iterator[BinaryIO]:
    """Open a new file for torch.save; the block ends with the error of a write that failed.

    What is yielded has `write` and `flush` alone, which torch.save needs.
    """
    with open(path, "wb") as file:
        recorder = ErrorRecordingFile(file)
        try:
            yield cast(BinaryIO, recorder)
        except RuntimeError as error:
            # Ctrl-C between two writes: torch.save has tried to end the file all the same
            if isinstance(error.__context__, KeyboardInterrupt):
                raise error.__context__ from None
            raise
        if recorder.error is not None:
            raise recorder.error
        file.flush()
        # before it is renamed: after a power failure the name must not lead to an empty file
        os.fsync(file.fileno())


@contextlib.contextmanager
def names_output(output: str, work: str) -> Iterator[None]:
    """Name `output` in an OSError of the block that names nothing, or the hidden `work`.

    Those that name nothing are of a full disk and its like alone.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and UNWRITTEN.search(str(error)):
            raise OSError(f"{output}: {error}") from error
        # as text: a descriptor is a number
        is_hidden = error.filename is not None and str(error.filename).startswith(work)
        if not is_hidden and (error.filename is not None or error.errno not in NO_SPACE):
            raise
        reason = error.strerror or str(error)
        raise OSError(error.errno or 0, reason, output) from error


@contextlib.contextmanager
def atomic_write(path: str) -> Iterator[BinaryIO]:
    """Open `path` for writing bytes; it changes when the block has ended without an error.

    Raises OSError that names `path` when it cannot be written; the file is unchanged then.
    """
    folder, name = os.path.split(os.path.abspath(path))
    part = os.path.join(folder, f".{name}.{host_name()}.{os.getpid()}.part")
    with removed_at_the_end(part):
        try:
            with open_for_torch(part) as file:
                yield file
            os.replace(part, path)
            _flush_folder(folder)
        except OSError as error:
            reason = f"{error.strerror or error}; what was there before is whole"
            raise OSError(error.errno or 0, reason, os.fspath(path)) from error


def atomic_copy(source: str, path: str) -> str:
    """Copy a file to `path` by an atomic write and return `path`."""
    with open(source, "rb") as content, atomic_write(path) as file:
        shutil.copyfileobj(content, file, 1 << 20)
    return path


@contextlib.contextmanager
def folder_beside(path: str) -> Iterator[str]:
    """Yield a new hidden folder in the folder of `path`, which is removed when the block ends.

    What is to become `path` is written there: a rename within one file system is a single step.
    """
    parent, name = os.path.split(os.path.abspath(path))
    folder = os.path.join(parent, f".{name}.{secrets.token_hex(4)}")
    with removed_at_the_end(folder), names_output(str(path), folder):
        os.mkdir(folder)  # not mkdtemp, whose folders nobody else may read
        yield folder


def replace_folder(work: str, target: str) -> None:
    """Rename the finished folder `work` to `target`, in the place of a folder that is there.

    Of a symbolic link the folder behind it is replaced: `work` is to be beside that one. An error
    or a signal leaves one of the two there.
    """
    target = os.path.realpath(target)
    if not os.path.exists(target):
        os.rename(work, target)
        return
    # a rename cannot replace a folder that holds files
    parent, name = os.path.split(target)
    old = tempfile.mkdtemp(prefix=f".{name}.", dir=parent)
    aside = os.path.join(old, name)
    with signals_wait():
        try:
            os.rename(target, aside)
            os.rename(work, target)
        except BaseException:
            if not os.path.exists(target):
                os.rename(aside, target)
            raise
        finally:
            shutil.rmtree(old, ignore_errors=True)


def flush(path: str) -> None:
    """Write a closed file, and its name, to the disk."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
    _flush_folder(os.path.dirname(os.path.abspath(path)))


def _flush_folder(folder: str) -> None:
    """Write the folder's list of names to the disk, where the file system can do that."""
    with contextlib.suppress(OSError):  # some network file systems cannot; the rename is done
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_leftovers(folder: str) -> list[str]:
    """Remove what killed writes left in `folder` and return the names of these files.

    Only the process that holds the folder's lock may call this: nobody else writes there, except
    for other processes of this host that are still alive.
    """
    removed = []
    for name in sorted(os.listdir(folder)):
        match = LEFTOVER.fullmatch(name)
        if match is None and STOCK_LEFTOVER.fullmatch(name) is None:
            continue
        # A process number says something on its own host only. Of a process of
        # another host the lock says that it has ended.
        if match and match["host"] == host_name() and is_alive(int(match["pid"])):
            continue
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
            removed.append(name)
    return removed


def is_alive(pid: int) -> bool:
    """Return True if another process of this host has the number `pid`."""
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)  # signal 0 is not sent, only checked
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True
