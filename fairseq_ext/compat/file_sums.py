"""SHA-256 of files, which are read in blocks: a checkpoint need not fit into memory."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash

BLOCK = 1 << 20  # bytes


def file_sum(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    total = hashlib.sha256()
    add_file(total, path)
    return total.hexdigest()


def add_file(total: _Hash, path: str | os.PathLike[str]) -> None:
    """Add the contents of a file to a checksum."""
    with open(path, "rb") as stream:
        while block := stream.read(BLOCK):
            total.update(block)
