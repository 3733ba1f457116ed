"""The file of progress of a command that translates many lines: it goes on where it was stopped."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Dict, List, Union

from .. import UsageError, atomic_path
from .pairs import Pair


def digest(contents: Union[Path, List[str]]) -> str:
    """Return a checksum of a file, of all files of a folder, or of lines."""
    total = hashlib.sha256()
    if isinstance(contents, list):
        total.update("\n".join(contents).encode())
        return total.hexdigest()
    files = sorted(contents.rglob("*")) if contents.is_dir() else [contents]
    for path in files:
        if path.is_file():
            with path.open("rb") as file:
                for chunk in iter(lambda: file.read(1 << 20), b""):
                    total.update(chunk)
    return total.hexdigest()


class Progress:
    """Pairs that are made, in a file that is written block by block.

    The first line of the file holds the options; each further one is a block of pairs. A line that
    was not written to its end is dropped.

    Args:
        path: of the file; it is made where there is none.
        options: what the pairs depend on.
        force: begin anew where the file was made with other options, instead of UsageError.
    """

    def __init__(self, path: Path, options: Dict[str, Any], force: bool):
        self.path = path
        self.pairs: List[Pair] = []
        header = json.dumps(options, sort_keys=True)
        if not path.parent.is_dir():
            raise UsageError(f"--output: {path.parent} is not a folder")
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        if lines and lines[0].decode() != header and not force:
            before = json.loads(lines[0])
            names = [name for name in options if before.get(name) != options[name]]
            raise UsageError(
                f"--output: {path} was begun with other {', '.join(names)}; allowed: the same, or "
                "--force to begin anew"
            )
        if not lines or lines[0].decode() != header:
            lines = [header.encode()]
        for line in lines[1:]:
            self.pairs += [Pair(*entry) for entry in json.loads(line)]
        # without the line that an interruption has cut; the file is whole at every moment
        with atomic_path(path) as temporary:
            temporary.write_bytes(b"".join(line + b"\n" for line in lines))

    def add(self, pairs: List[Pair]) -> None:
        """Add a block; it is on the disk when this returns."""
        with self.path.open("ab") as file:
            file.write(json.dumps([list(pair) for pair in pairs]).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.pairs += pairs

    def remove(self) -> None:
        """Remove the file, once the pairs are elsewhere."""
        self.path.unlink()
