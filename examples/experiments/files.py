"""JSON files and folders that several processes may want at once."""

import contextlib
import fcntl
import hashlib
import json
from pathlib import Path
from typing import Any, Iterator, Optional, Sequence

from fairseq_ext.tools import atomic_path

from . import UsageError


def write_json(path: Path, content: object) -> None:
    """Write a file that is there wholly or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_json(path: Path, keys: Sequence[str] = ()) -> dict[str, Any]:
    """Return the content of a file, or nothing where it does not exist.

    keys: what it has unless it is empty. Raises UsageError where it is damaged.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        if not isinstance(content, dict):
            raise ValueError("no table")
        missing = [key for key in keys if content and key not in content]
        if missing:
            raise ValueError(f"without {', '.join(missing)}")
    except (OSError, ValueError) as error:  # which errors of JSON and of the encoding are
        raise UsageError(
            f"{path} is damaged: {error}; restore it, or remove {path.parent} and start again"
        ) from error
    return content


@contextlib.contextmanager
def locked(folder: Path, file: Optional[Path] = None, waits: bool = False) -> Iterator[None]:
    """Hold a folder by a file, FOLDER/lock unless named. UsageError while another process does.

    waits: until that process is done, instead of the error.
    """
    file = file or folder / "lock"
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{folder}: another process works on it") from None
        yield


def fingerprint(content: object) -> str:
    """Return the SHA-256 of what JSON can hold."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
