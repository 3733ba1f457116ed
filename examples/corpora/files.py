"""Reads raw text line by line, plain or packed, and writes files that are never half-written."""

import contextlib
import itertools
import re
import unicodedata
from pathlib import Path
from typing import Iterable, Iterator, Sequence, TextIO, Union

from fairseq_ext.compat import text_lines
from fairseq_ext.tools import UsageError, atomic_path, make_folder, open_text

File = Union[str, Path]
# Soft hyphens, zero-width blanks and joiners, marks of the direction, byte order marks: copies of a
# text differ in them, as of Khmer with and without U+200B between words.
INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")


def find(path: File) -> Path:
    """Return the file or its .gz. Raises UsageError if there is neither."""
    for candidate in (Path(path), Path(f"{path}.gz")):
        if candidate.is_file():
            return candidate
    raise UsageError(f"there is neither {path} nor {path}.gz")


def lines_of(path: File, encoding: str = "utf-8") -> Iterator[str]:
    """Yield the lines of a plain or .gz file, without surrounding white space.

    A carriage return within a line becomes a blank, since fairseq would begin another line there.
    Raises UsageError, naming the line, where the file cannot be read.
    """
    try:
        for line in text_lines.lines_of(path, encoding):
            yield line.replace("\r", " ").strip()
    except text_lines.UnreadableText as error:
        raise UsageError(str(error)) from error


def normalised(line: str) -> str:
    """Return a line as the same text in another encoding of its characters has it.

    In Unicode's form NFKC, without invisible characters and with one blank in place of any white
    space. A line that shows nothing is empty.
    """
    return " ".join(INVISIBLE.sub("", unicodedata.normalize("NFKC", line)).split())


def aligned(*paths: Path) -> Iterator[tuple[str, ...]]:
    """Yield tuples of the lines with the same number of several files.

    Raises UsageError with both counts when the files differ in their number of lines.
    """
    sides = [lines_of(path) for path in paths]
    for count, lines in enumerate(itertools.zip_longest(*sides)):
        if None in lines:
            short = paths[lines.index(None)]
            # zip_longest has read one line more of each file that is longer
            place = next(place for place, line in enumerate(lines) if line is not None)
            more = count + 1 + sum(1 for _ in sides[place])
            raise UsageError(
                f"{paths[place]} has {more} lines and {short} {count}: line N of one must be the "
                "translation of line N of the other"
            )
        yield lines


def lines_named(numbers: Sequence[int]) -> str:
    """Return the first of line numbers, and how many more there are."""
    return f"line {numbers[0]}" + (f" and {len(numbers) - 1:,} more" if len(numbers) > 1 else "")


def check_languages(languages: Sequence[str], least: int = 1) -> None:
    """Raise UsageError for fewer languages than `least`, and for one that is there twice."""
    if len(languages) < least or len(set(languages)) < len(languages):
        raise UsageError(f"--languages {' '.join(languages)}: allowed: {least} or more, each once")


def outputs_in(folder: Path, texts: Sequence[Path]) -> list[Path]:
    """Return the files of the same names in a folder, where plain text is written."""
    return [folder / text.name.removesuffix(".gz") for text in texts]


def check_outputs(
    outputs: Sequence[Path], inputs: Sequence[Path], option: str = "--output"
) -> None:
    """Raise UsageError where an output is another one as well, or a file that is read.

    option: names the outputs.
    """
    for place, output in enumerate(outputs):
        if output in outputs[:place]:
            raise UsageError(f"{output} would be written twice; allowed: texts of different names")
        if output.resolve() in {path.resolve() for path in inputs}:
            raise UsageError(
                f"{output} would be replaced by what is made of it; allowed: another {option}"
            )


@contextlib.contextmanager
def written(path: File) -> Iterator[TextIO]:
    """Open a text file to write, packed for .gz, that is `path` only when all went well."""
    make_folder(Path(path).parent)
    with atomic_path(path) as temporary:
        with open_text(temporary) as stream:
            yield stream


def write_lines(path: File, lines: Iterable[str]) -> int:
    """Write lines to a file; return how many."""
    count = 0
    with written(path) as stream:
        for line in lines:
            stream.write(line + "\n")
            count += 1
    return count
