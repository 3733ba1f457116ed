"""The files that checkpoints are: a zip archive, or pickles in a row before torch 1.6."""

from __future__ import annotations

import contextlib
import os
import tarfile
import zipfile
from typing import BinaryIO, Iterator, NamedTuple, Union

CheckpointFile = Union[str, "os.PathLike[str]", BinaryIO]


class Container(NamedTuple):
    """What a file says about itself before anything in it is read.

    refusal: why it is not read at all, in words; None if it may be. size: its bytes. storages:
    {name of a storage: its bytes}; None where the file has no such table.
    """

    refusal: str | None
    size: int
    storages: dict[str, int] | None


def file_name(file: CheckpointFile) -> str:
    """Return the path of a file, or words in its place."""
    if isinstance(file, (str, os.PathLike)):
        return os.fspath(file)
    return str(getattr(file, "name", "the stream"))


def inspect_container(file: CheckpointFile) -> Container:
    """Return what kind of file this is; a stream is left where it was."""
    with _opened(file) as stream:
        start = stream.tell()
        size = stream.seek(0, os.SEEK_END) - start
        stream.seek(start)
        try:
            if zipfile.is_zipfile(stream):
                stream.seek(start)
                return _inspect_zip(stream, size)
            stream.seek(start)
            return Container(_refused_format(stream.read(tarfile.BLOCKSIZE)), size, None)
        finally:
            stream.seek(start)


@contextlib.contextmanager
def _opened(file: CheckpointFile) -> Iterator[BinaryIO]:
    """Yield a stream of the file; a stream is yielded as it is."""
    if isinstance(file, (str, os.PathLike)):
        with open(file, "rb") as stream:
            yield stream
    else:
        yield file


def _inspect_zip(stream: BinaryIO, size: int) -> Container:
    """Return what the directory of a zip archive says."""
    try:
        entries = zipfile.ZipFile(stream).infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return Container(None, size, None)  # torch says how it is damaged
    names = [entry.filename for entry in entries]
    if any(name.rpartition("/")[2] == "constants.pkl" for name in names):
        return Container("TorchScript, which is a program, not a checkpoint", size, None)
    if len(set(names)) < len(names):
        # which of them counts depends on the reader
        return Container("two entries of the same name", size, None)
    storages = {
        entry.filename.partition("/data/")[2]: entry.file_size
        for entry in entries
        if "/data/" in entry.filename
    }
    return Container(None, size, storages)


def _refused_format(head: bytes) -> str | None:
    """Return why a file with these first bytes is not read; None if it may be.

    The tar files of torch before 0.1.10 are older than fairseq.
    """
    try:
        tarfile.TarInfo.frombuf(head, tarfile.ENCODING, "surrogateescape")
    except tarfile.HeaderError:
        return None
    return "a tar file, which no version of fairseq writes"
