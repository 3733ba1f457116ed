"""Text files as lines, by one rule for every command.

A newline ends a line, alone or after a carriage return, and nothing else does: form feeds, U+2028
and other separators stand inside of sentences. A byte order mark is no text. Texts are UTF-8.

Nothing here imports fairseq or torch: the light commands of `fairseq-ext` use it as well.
"""

from __future__ import annotations

import codecs
import gzip
import lzma
import os
import re
import struct
import tarfile
import zipfile
import zlib
from typing import Iterable, Iterator

BYTE_ORDER_MARK = "\ufeff"
LINE_BREAKS = re.compile("[\r\n]+")
# What reading a file or an archive raises that is missing, damaged or not supported. RuntimeError
# is of an encrypted .zip, and NotImplementedError, which is one, of another compression.
UNREADABLE = (
    OSError,
    EOFError,
    RuntimeError,
    UnicodeDecodeError,  # of a name in an archive
    zlib.error,
    lzma.LZMAError,
    struct.error,
    tarfile.TarError,
    zipfile.BadZipFile,
)


class UnreadableText(ValueError):
    """A text is missing, damaged or not UTF-8; the message names file and line."""


def without_line_breaks(text: str) -> str:
    """Return a text that is a line of a file: a blank stands where it would end one."""
    return LINE_BREAKS.sub(" ", text)


def decoded(
    stream: Iterable[bytes], name: str | os.PathLike[str], encoding: str = "utf-8"
) -> Iterator[str]:
    """Yield the lines of a stream of bytes without their ends.

    name: of the file, for errors. Raises UnreadableText where the encoding of a line is another.
    """
    for number, line in enumerate(stream, start=1):
        if number == 1 and encoding == "utf-8":
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            text = line.decode(encoding)
        except UnicodeDecodeError as error:
            reason = f"not {encoding.upper()} ({error.reason})"
            raise UnreadableText(f"{os.fspath(name)}, line {number}: {reason}") from error
        yield text.removesuffix("\n").removesuffix("\r")


def lines_of(path: str | os.PathLike[str], encoding: str = "utf-8") -> Iterator[str]:
    """Yield the `decoded` lines of a plain or .gz file.

    Raises UnreadableText where the file cannot be read, and as `decoded` does.
    """
    opener = gzip.open if os.fspath(path).endswith(".gz") else open
    try:
        with opener(path, "rb") as stream:
            yield from decoded(stream, path, encoding)
    except UNREADABLE as error:
        reason = getattr(error, "strerror", None) or error
        raise UnreadableText(f"cannot read {os.fspath(path)}: {reason}") from error
