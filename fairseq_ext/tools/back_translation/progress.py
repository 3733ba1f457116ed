"""The file of progress of a command that translates many lines: it goes on where it was stopped."""

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any, Dict, List, Type, Union

from ...compat.atomic_files import names_output
from ...compat.file_sums import add_file
from .. import UsageError, atomic_path
from .pairs import SyntheticPair


def digest(contents: Union[Path, List[str]]) -> str:
    """Return a checksum of a file, of the names and contents of a folder's files, or of lines."""
    total = hashlib.sha256()
    if isinstance(contents, list):
        total.update("\n".join(contents).encode())
        return total.hexdigest()
    files = sorted(contents.rglob("*")) if contents.is_dir() else [contents]
    for path in files:
        if path.is_file():
            if path != contents:
                total.update(f"{path.relative_to(contents)}\0{path.stat().st_size}\0".encode())
            add_file(total, path)
    return total.hexdigest()


def _read(path: Path, number: int, line: bytes, kind: Type[Any]) -> Any:
    """Return what a line holds: the options, a dict, or a block of pairs, a list of lists."""
    with contextlib.suppress(ValueError):  # no JSON, or not UTF-8
        value = json.loads(line)
        if isinstance(value, kind) and (kind is dict or all(_is_pair(entry) for entry in value)):
            return value
    raise UsageError(
        f"--output: {path}, line {number}: not written by this command; allowed: another prefix"
    )


def _is_pair(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) == len(SyntheticPair._fields)


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
        self.pairs: List[SyntheticPair] = []
        header = json.dumps(options, sort_keys=True)
        if not path.parent.is_dir():
            raise UsageError(f"--output: {path.parent} is not a folder")
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        is_same = bool(lines) and lines[0] == header.encode()
        if lines and not is_same and not force:
            before = _read(path, 1, lines[0], dict)
            names = [name for name in options if before.get(name) != options[name]]
            raise UsageError(
                f"--output: {path} was begun with other {', '.join(names)}; allowed: the same, or "
                "--force to begin anew"
            )
        lines = lines if is_same else [header.encode()]
        for number, line in enumerate(lines[1:], start=2):
            self.pairs += [SyntheticPair(*entry) for entry in _read(path, number, line, list)]
        # without the line that an interruption has cut; the file is whole at every moment
        with atomic_path(path) as temporary:
            temporary.write_bytes(b"".join(line + b"\n" for line in lines))
        self._size = path.stat().st_size

    def add(self, pairs: List[SyntheticPair]) -> None:
        """Add a block; it is on the disk when this returns.

        Raises UsageError where somebody else has written to the file.
        """
        with names_output(str(self.path), str(self.path)), self.path.open("ab") as file:
            if file.tell() != self._size:
                raise UsageError(f"--output: another process writes to {self.path} as well")
            file.write(json.dumps([list(pair) for pair in pairs]).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
            self._size = file.tell()
        self.pairs += pairs

    def remove(self) -> None:
        """Remove the file, once the pairs are elsewhere."""
        self.path.unlink()
