"""Reading raw text and writing so that nothing half-written is ever seen."""

import contextlib
import gzip
import hashlib
import itertools
import os
from pathlib import Path

from . import RecipeError


def find(folder, stem, language):
    """Return `folder/stem.language`, plain or .gz. Raises RecipeError if neither exists."""
    plain = Path(folder) / f"{stem}.{language}"
    packed = Path(f"{plain}.gz")
    for path in (plain, packed):
        if path.is_file():
            return path
    raise RecipeError(f"RAW {folder}: there is neither {plain.name} nor {packed.name}")


def lines_of(path):
    """Yield the lines of a plain or .gz text file, without line ends and surrounding white space.

    Raises RecipeError with file and line number where the text is not UTF-8.
    """
    opener = gzip.open if Path(path).suffix == ".gz" else open
    with opener(path, "rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                yield line.decode("utf-8").strip()
            except UnicodeDecodeError as error:
                raise RecipeError(f"{path}, line {number}: not UTF-8 ({error.reason})") from error


def aligned(*paths):
    """Yield tuples of the lines with the same number of several files.

    Raises RecipeError with both counts when the files differ in their number of lines.
    """
    missing, sides = object(), [lines_of(path) for path in paths]
    for count, lines in enumerate(itertools.zip_longest(*sides, fillvalue=missing)):
        if missing in lines:
            short = paths[lines.index(missing)]
            # zip_longest has read one line more of each file that is longer
            place = next(place for place, line in enumerate(lines) if line is not missing)
            more = count + 1 + sum(1 for _ in sides[place])
            raise RecipeError(
                f"{paths[place]} has {more} lines and {short} {count}: line N of one must be the "
                "translation of line N of the other"
            )
        yield lines


def digest(path):
    """Return the SHA-256 of a file."""
    summed = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            summed.update(block)
    return summed.hexdigest()


@contextlib.contextmanager
def written(path):
    """Open a text file to write that takes the name `path` only when all went well."""
    temporary = Path(f"{path}.tmp{os.getpid()}")
    try:
        with open(temporary, "w", encoding="utf-8", newline="\n") as stream:
            yield stream
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
