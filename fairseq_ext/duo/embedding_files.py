"""Files of pre-trained word vectors: GloVe .txt, word2vec .vec and .bin, fastText .vec, also gzip.

Text: one line per word, the word and its numbers with spaces between; an optional first line
"WORDS WIDTH". Words may hold spaces themselves (GloVe 840B): the last WIDTH fields are the numbers.
Binary (.bin, of word2vec): the first line "WORDS WIDTH", then for each word its bytes, a space and
WIDTH float32 of the machine that wrote it (little-endian), perhaps a newline. Only the vectors of
words that are asked for are kept. Words are compared as bytes of UTF-8; of a word that is there
twice the first vector counts.

Every error is a ValueError that names the file, and the line or the word's number in it.
"""

import codecs
import gzip
import logging
import struct
import zlib
from io import BufferedReader
from pathlib import Path
from typing import Container, Dict, Iterable, Mapping, Optional, Tuple, Union

import numpy as np
import torch
from fairseq.data import Dictionary
from torch import nn

from ..common.labels import MADE_UP

logger = logging.getLogger(__name__)

GZIP, FASTTEXT_MODEL = b"\x1f\x8b", struct.pack("<i", 793712314)
Stream = Union[BufferedReader, gzip.GzipFile]
LONGEST_WORD = 4096  # bytes; a longer one means that the file is something else


def read(path: str, words: Iterable[str]) -> Tuple[Dict[str, np.ndarray], int]:
    """Return {word: vector (width,) float32} of the ``words`` that the file has, and the width.

    Args:
        path: a file of one of the formats above; binary if its name ends in .bin or .bin.gz.
        words: those that are asked for; others are passed over.

    Raises ValueError, naming file and line, for a file that is missing, empty, cut off, of another
    format, or that holds numbers that are not finite for one of the words.
    """
    # files are compared as bytes: most of their words are not asked for and need no decoding
    requested = {word.encode("utf-8"): word for word in words}
    if not Path(path).is_file():
        raise ValueError(f"{path}: no such file of word vectors")
    # by content, not by name: a .vec may be compressed
    with open(path, "rb") as stream:
        compressed = stream.read(2) == GZIP
    with gzip.open(path) if compressed else open(path, "rb") as stream:
        try:
            start = stream.peek(4)[:4]  # left in the stream
            if not start:
                raise ValueError(f"{path}: empty, a file of word vectors is needed")
            if start == FASTTEXT_MODEL:
                raise ValueError(f"{path}: a fastText model; take the .vec file beside it")
            binary = Path(path).name.removesuffix(".gz").endswith(".bin")
            vectors, width = (_read_binary if binary else _read_text)(path, stream, requested)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path}: broken gzip file: {error}") from error
    return {requested[word]: vector for word, vector in vectors.items()}, width


def _header(line: bytes) -> Optional[Tuple[int, int]]:
    """Return (words, width) if the line is a header, else None."""
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields):
        return int(fields[0]), int(fields[1])
    return None


def _read_text(
    path: str, stream: Stream, requested: Container[bytes]
) -> Tuple[Dict[bytes, np.ndarray], int]:
    """Return the vectors of the requested words of a text file, and their width."""
    vectors: Dict[bytes, np.ndarray] = {}
    announced: Optional[int] = None
    width: Optional[int] = None
    count, number = 0, 0
    for number, line in enumerate(stream, start=1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)  # no part of the first word
            header = _header(line)
            if header:
                announced, width = header
                continue
        # a vector's fields are parted by single spaces; words may hold other white space
        fields = line.rstrip().split(b" ")
        if width is None:  # no header: GloVe
            width = len(fields) - 1
        if len(fields) <= width or width < 1:
            raise ValueError(
                f"{path}:{number}: {len(fields) - 1} numbers after the word, {max(width, 1)} needed"
            )
        count += 1
        word = b" ".join(fields[:-width])  # words of GloVe 840B may hold spaces
        # of a word that comes twice the first vector counts
        if word in requested and word not in vectors:
            try:
                vector = np.array(fields[-width:], dtype=np.bytes_).astype(np.float32)
            except ValueError as error:
                raise ValueError(f"{path}:{number}: not a number: {error}") from error
            _check_finite(vector, f"{path}:{number}")
            vectors[word] = vector
    # a file cut off in transfer is read to its end without any other sign
    if count == 0 or (announced is not None and count < announced):
        raise ValueError(
            f"{path}:{number}: the file ends after {count} words, {announced or 'some'} announced"
        )
    assert width is not None  # of the first line
    return vectors, width


def _read_binary(
    path: str, stream: Stream, requested: Container[bytes]
) -> Tuple[Dict[bytes, np.ndarray], int]:
    """Return the vectors of the requested words of a word2vec .bin file, and their width."""
    header = _header(stream.readline(LONGEST_WORD))
    if not header or header[1] < 1:
        raise ValueError(f"{path}:1: a word2vec .bin file starts with a line 'WORDS WIDTH'")
    announced, width = header
    vectors: Dict[bytes, np.ndarray] = {}
    for number in range(1, announced + 1):
        place = f"{path}: word {number} of {announced}"
        word = _binary_word(stream, place)
        numbers = stream.read(4 * width)  # float32
        if len(numbers) < 4 * width:
            raise ValueError(f"{place}: the file ends within its vector")
        if word in requested and word not in vectors:
            # little-endian, whatever the machine
            vectors[word] = np.frombuffer(numbers, dtype="<f4")
            _check_finite(vectors[word], place)
    return vectors, width


def _binary_word(stream: Stream, place: str) -> bytes:
    """Return the bytes before the next space, without the newline that may end the word before."""
    word = bytearray()
    while len(word) <= LONGEST_WORD:
        byte = stream.read(1)
        if not byte:
            raise ValueError(f"{place}: the file ends here")
        if byte == b" ":
            # some writers end each vector with a newline, which then stands before the next word
            return bytes(word).lstrip(b"\n")
        word += byte
    raise ValueError(f"{place}: no end of the word in {LONGEST_WORD} bytes")


def _check_finite(vector: np.ndarray, place: str) -> None:
    if not np.isfinite(vector).all():
        raise ValueError(f"{place}: a number that is infinite or not a number")


def embedding(
    label: str,
    dictionary: Dictionary,
    path: Optional[str],
    width: Optional[int],
    unit: bool = False,
) -> nn.Embedding:
    """Return an embedding of a dictionary, from a file or, without ``path``, drawn at random.

    What the file does not have is drawn from N(0, width^-1/2); the row of padding is zero. How much
    it has is logged.

    Args:
        label: names the embedding in messages, e.g. "S".
        path: the file, or None.
        width: W; None means the file's.
        unit: scale the file's vectors by one factor to the variance 1 / W of those that are drawn.

    Raises ValueError, naming the file, where it has another width or none of the words.
    """
    vectors_of: Dict[str, np.ndarray] = {}
    if path is None:
        assert width is not None
    else:
        vectors_of, read_width = read(path, dictionary.symbols[dictionary.nspecial :])
        if width not in (None, read_width):
            raise ValueError(f"{path}: vectors of {read_width} numbers, not {width} ({label})")
        width = read_width
    table = nn.Embedding(len(dictionary), width, dictionary.pad())
    # words without a vector, and all of them without a file
    nn.init.normal_(table.weight, std=width**-0.5)
    nn.init.zeros_(table.weight[dictionary.pad()])
    if path is None:
        return table
    _report_coverage(label, dictionary, path, vectors_of)
    # entries of the dictionary that the file has; the other rows stay as they were drawn
    indices = torch.tensor([dictionary.index(word) for word in vectors_of])
    vectors = torch.from_numpy(np.stack(list(vectors_of.values())))
    if unit:
        # one factor for all: directions and relative lengths stay
        vectors = vectors / (vectors.square().mean().sqrt() * width**0.5)
    with torch.no_grad():
        table.weight[indices] = vectors.to(table.weight)
    return table


def _report_coverage(
    label: str, dictionary: Dictionary, path: str, vectors: Mapping[str, np.ndarray]
) -> None:
    """Log how much of the dictionary the file covers; raise ValueError where it is nothing."""
    real = [
        (word, dictionary.count[index])
        for index, word in enumerate(dictionary.symbols)
        # special symbols and fairseq-preprocess's filling are not expected in any file
        if index >= dictionary.nspecial and not word.startswith(MADE_UP)
    ]
    if not vectors:
        raise ValueError(f"{path}: has none of the {len(real)} words of the dictionary ({label})")
    total = sum(count for _, count in real)
    covered = sum(count for word, count in real if word in vectors)
    logger.info(
        f"embedding {label} from {path}: {len(vectors)} of {len(real)} words "
        f"({100 * len(vectors) / len(real):.1f}%), {100 * covered / max(total, 1):.1f}% of the "
        "occurrences that the dictionary counts"
    )
