"""Data files that are damaged or do not fit together are refused by name when they are read."""

from __future__ import annotations

import functools
import os
import struct
from typing import TYPE_CHECKING, Any, TextIO

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    import numpy as np
    from fairseq.data import Dictionary
    from fairseq.data.indexed_dataset import MMapIndexedDataset

MMAP_MAGIC = b"MMIDIDX\x00\x00"
CACHED_MAGIC = b"TNTIDX\x00\x00"
HEADER = 9 + 8 + 1 + 8  # magic, version, code of the number type, count of sentences
PIECE = 1 << 24  # numbers that are checked at once
# bytes that are checked of one file; of a larger file, evenly spaced pieces: every start of a
# training would read it whole otherwise
LIMIT = 1 << 31


class UnreadableFile(ValueError):
    """A file that is not what it must be; the message begins with its path."""


@patch(
    "fairseq.data.indexed_dataset",
    because="fairseq 0.12.2: a damaged .idx or .bin, and data binarised with another dictionary, "
    "end in errors of numpy or `index out of range in self`",
)
def binarised_data_is_whole(module: PatchedModule) -> None:
    """Check the sizes of both files, and the largest index against the dictionary."""
    stock = module.make_dataset

    def make_dataset(
        path: str,
        impl: str | None,
        fix_lua_indexing: bool = False,
        dictionary: Dictionary | None = None,
    ) -> Any:
        if impl in ("mmap", "cached", "lazy"):
            check_files(path, impl)
        dataset = stock(path, impl, fix_lua_indexing, dictionary)
        if dictionary is not None and isinstance(dataset, module.MMapIndexedDataset):
            check_vocabulary(path, dataset, dictionary)
        return dataset

    module.make_dataset = make_dataset


def check_files(path: str, impl: str) -> None:
    """Raise unless path.idx and path.bin fit together; nothing is checked if both are missing.

    Args:
        path: of both files, without their endings.
        impl: mmap, cached or lazy; the sizes are checked for mmap alone.

    Raises FileNotFoundError where one of them is missing and UnreadableFile for another format or
    sizes that do not fit.
    """
    index, data = f"{path}.idx", f"{path}.bin"
    has_index, has_data = os.path.isfile(index), os.path.isfile(data)
    if not (has_index or has_data):
        return
    if not (has_index and has_data):
        missing, present = (data, index) if has_index else (index, data)
        raise FileNotFoundError(2, f"not there, though {present} is", missing)
    with open(index, "rb") as stream:
        header = stream.read(HEADER)
    magic = MMAP_MAGIC if impl == "mmap" else CACHED_MAGIC
    if not header.startswith(magic):
        raise UnreadableFile(
            f"{index}: not an index of fairseq-preprocess for --dataset-impl {impl}; binarise the "
            "data again"
        )
    if impl == "mmap":
        _check_mmap_sizes(index, data, header)


def _check_mmap_sizes(index: str, data: str, header: bytes) -> None:
    """Raise UnreadableFile unless both sizes are those that the header and the table give."""
    import numpy
    from fairseq.data.indexed_dataset import _code_to_dtype

    # a header that is cut off: code 0, which no number type has
    code, count = struct.unpack("<BQ", header[17:]) if len(header) == HEADER else (0, 0)
    # 4 bytes for the length and 8 for the place of each sentence
    if code not in _code_to_dtype or os.path.getsize(index) != HEADER + 12 * count:
        raise UnreadableFile(
            f"{index}: damaged, {os.path.getsize(index):,} bytes; {count:,} sentences need "
            f"{HEADER + 12 * count:,}; binarise the data again"
        )
    lengths = numpy.memmap(index, numpy.int32, "r", HEADER, (count,)) if count else numpy.zeros(0)
    width = numpy.dtype(_code_to_dtype[code]).itemsize
    # sentences may share a file with others, as in a part of a corpus that has an index alone
    offset = HEADER + 4 * count
    places = numpy.memmap(index, numpy.int64, "r", offset, (count,)) if count else lengths
    # where the last sentence ends
    expected = int((places + lengths.astype(numpy.int64) * width).max(initial=0))
    if os.path.getsize(data) < expected or int(places.min(initial=0)) < 0:
        raise UnreadableFile(
            f"{data}: damaged, {os.path.getsize(data):,} bytes where its .idx file says "
            f"{expected:,}; binarise the data again"
        )


def check_vocabulary(path: str, dataset: MMapIndexedDataset, dictionary: Dictionary) -> None:
    """Raise when the data hold an index that the dictionary has no symbol for.

    This reads the file once per process (0.1 s per gigabyte in memory), and a part of a file that
    is larger than LIMIT.
    """
    name = f"{path}.bin"
    stat = os.stat(name)
    dtype = dataset._index.dtype
    largest = _largest_number(name, stat.st_mtime_ns, stat.st_size, dtype)
    if largest is not None and largest >= len(dictionary):
        raise UnreadableFile(
            f"{name}: holds the number {largest}, and the dictionary has {len(dictionary)} symbols "
            f"(0 to {len(dictionary) - 1}): it is not the dictionary that the data were binarised "
            "with"
        )


@functools.lru_cache(maxsize=1024)
def _largest_number(
    name: str, _modification_time: int, size: int, dtype: np.dtype[Any]
) -> int | None:
    """Return the largest number in a file; None if it is empty. A changed file is read anew."""
    import numpy

    if not size:
        return None
    # up to LIMIT bytes the pieces are neighbours; in a larger file there are gaps between them
    numbers = numpy.memmap(name, dtype, "r")
    step = max(PIECE, PIECE * size // LIMIT)
    starts = range(0, len(numbers), step)
    return max(int(numbers[start : start + PIECE].max()) for start in starts)


@patch(
    "fairseq.data.dictionary",
    because="fairseq 0.12.2: errors in a dictionary name neither the file nor the line",
)
def dictionary_errors_name_the_line(module: PatchedModule) -> None:
    """Name file and line; refuse an empty file."""
    stock = module.Dictionary.add_from_file

    def add_from_file(self: Dictionary, f: str | TextIO) -> None:
        try:
            stock(self, f)
        except FileNotFoundError:
            raise
        except Exception as error:
            if isinstance(f, str) and os.path.isfile(f):
                raise UnreadableFile(_describe_wrong_line(f, str(error))) from error
            raise
        if isinstance(f, str) and os.path.isfile(f) and not os.path.getsize(f):
            raise UnreadableFile(f"{f}: empty; a dictionary has lines of a symbol and its count")

    module.Dictionary.add_from_file = add_from_file


def _describe_wrong_line(path: str, reason: str) -> str:
    """Return the first line of a dictionary that cannot be read, and why; else `reason`."""
    seen: set[str] = set()
    with open(path, "rb") as stream:
        for number, raw in enumerate(stream, 1):
            place = f"{path}, line {number}"
            try:
                # as fairseq splits a line: a symbol may contain blanks, its count may not
                words = raw.decode("utf-8").rstrip().rsplit(" ", 1)
            except UnicodeDecodeError:
                return f"{place}: not UTF-8"
            overwrite = words[-1] == "#fairseq:overwrite"
            words = words[0].rsplit(" ", 1) if overwrite else words
            if len(words) < 2 or not words[1].lstrip("-").isdigit():
                shown = raw.decode("utf-8").rstrip()
                return f"{place}: {shown!r} is not a symbol, a space and its count"
            if words[0] in seen and not overwrite:
                return f"{place}: {words[0]!r} is there a second time"
            seen.add(words[0])
    return f"{path}: {reason}"


@patch(
    "fairseq.data.language_pair_dataset",
    because="fairseq 0.12.2: an assertion about sides of different length names no file",
)
def sides_have_the_same_length(module: PatchedModule) -> None:
    """Name both sides of a parallel corpus when they differ in length."""
    stock = module.LanguagePairDataset.__init__

    @functools.wraps(stock)
    def __init__(
        self: Any,
        src: Any,
        src_sizes: Any,
        src_dict: Dictionary,
        tgt: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if tgt is not None and len(src) != len(tgt):
            raise UnreadableFile(
                f"{_file_name(src, 'the source')} has {len(src):,} sentences and "
                f"{_file_name(tgt, 'the target')} has {len(tgt):,}; line by line they must be "
                "translations of each other"
            )
        stock(self, src, src_sizes, src_dict, tgt, *args, **kwargs)

    module.LanguagePairDataset.__init__ = __init__


def _file_name(dataset: Any, otherwise: str) -> str:
    """Return the file that the innermost of wrapped datasets reads."""
    while hasattr(dataset, "dataset"):
        dataset = dataset.dataset
    path = getattr(dataset, "_path", None)
    return f"{path}.bin" if isinstance(path, str) else otherwise
