"""Binarised files that hold no sentence: reading one ends in an error that names it."""

from contextlib import contextmanager
from typing import Any, Iterator, Optional

from fairseq.data import Dictionary, FairseqDataset, data_utils


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


def binarised_lines(
    prefix: str, dictionary: Dictionary, dataset_impl: Any, empty: str
) -> Optional[FairseqDataset]:
    """Return the lines of a binarised file, None where there is no such file.

    Args:
        prefix: its path without .bin and .idx.
        dictionary: of its words; files of text (raw) need it.
        dataset_impl: value of --dataset-impl.
        empty: the message of the ValueError for a file without lines.
    """
    with empty_file_as(empty):
        lines = data_utils.load_indexed_dataset(prefix, dictionary, dataset_impl)
    # files of text are read without mmap
    if lines is not None and not len(lines):
        raise ValueError(empty)
    return lines
