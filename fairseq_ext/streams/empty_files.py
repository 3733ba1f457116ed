"""Binarised files that hold no sentence: reading one ends in an error that names it."""

from contextlib import contextmanager
from typing import Iterator


@contextmanager
def empty_file_as(message: str) -> Iterator[None]:
    """Raise ValueError with this message where the block reads an empty .bin file."""
    try:
        yield
    except ValueError as error:
        # the words of Python's mmap, which reads the .bin file
        if "mmap an empty file" not in str(error):
            raise
        raise ValueError(message) from error
