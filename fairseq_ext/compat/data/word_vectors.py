"""Files of --encoder-embed-path and --decoder-embed-path: every vector counts, errors name a line.

The first line may be "WORDS WIDTH". Each other line is a word and its numbers, with spaces between.
"""

from __future__ import annotations

import logging
import math
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any, Dict, Iterator

from ..patch_registry import PatchedModule, patch
from ..text_lines import lines_of
from .data_files import UnreadableFile

if TYPE_CHECKING:
    import torch
    from fairseq.data import Dictionary

logger = logging.getLogger(__name__)


class WordVectors(Dict[str, Any]):
    """{word: its vector (width,)}. path: of the file."""

    path: str


@patch(
    "fairseq.utils",
    because="fairseq 0.12.2: --encoder-embed-path leaves out the first line of a file, though it "
    "may be a vector as in GloVe, gives a word with one number a row of that number, and its "
    "errors name neither file nor line",
)
def vectors_are_whole(module: PatchedModule) -> None:
    """Read a first line that is a vector; refuse vectors of other widths by file and line."""
    stock = module.load_embedding

    def parse_embedding(embed_path: str) -> WordVectors:
        vectors = WordVectors()
        vectors.path = embed_path
        for word, numbers in read_vectors(embed_path):
            vectors[word] = module.torch.Tensor(numbers)  # the last one of a word counts, as before
        return vectors

    def load_embedding(
        embed_dict: dict[str, torch.Tensor], vocab: Dictionary, embedding: torch.nn.Embedding
    ) -> torch.nn.Embedding:
        if isinstance(embed_dict, WordVectors):
            check_vectors(embed_dict, vocab, embedding.embedding_dim)
        loaded: torch.nn.Embedding = stock(embed_dict, vocab, embedding)
        return loaded

    module.parse_embedding = parse_embedding
    module.load_embedding = load_embedding


def check_vectors(vectors: WordVectors, dictionary: Dictionary, width: int) -> None:
    """Raise UnreadableFile for vectors of another width; warn of a file with none of the words."""
    size = len(next(iter(vectors.values())))
    if size != width:
        raise UnreadableFile(
            f"{vectors.path}: vectors of {size} numbers, and the embeddings have {width}; "
            f"allowed: --encoder-embed-dim {size} or --decoder-embed-dim {size} for its side"
        )
    if not any(symbol in vectors for symbol in dictionary.symbols):
        logger.warning(
            f"{vectors.path} has none of the {len(dictionary):,} words of the dictionary: the "
            "embeddings are drawn at random"
        )


def read_vectors(path: str) -> Iterator[tuple[str, list[float]]]:
    """Yield the words of a file and their numbers.

    Raises UnreadableFile, naming file and line, for a file without vectors and for a line that is
    not a word and as many numbers as there are on the other lines, and UnreadableText for a file
    that cannot be read.
    """
    lines = lines_of(path)
    first, second = next(lines, ""), next(lines, None)
    header = first.split()
    is_header = len(header) == 2 and all(field.isdigit() for field in header)
    width = int(header[1]) if is_header else _width(first if second is None else second)
    # stock takes any first line for a header; of another form, it still is none of the vectors
    if not is_header and width and _width(first) == width:
        yield _vector(first, width, f"{path}, line 1")
    elif second is None:  # a header, or nothing
        raise UnreadableFile(f"{path}: no vectors; allowed: lines of a word and its numbers")
    number = 1
    for number, line in enumerate(lines if second is None else chain([second], lines), 2):
        if line.strip():
            yield _vector(line, width, f"{path}, line {number}")
    if is_header and number - 1 < int(header[0]):
        logger.warning(
            f"{path}: ends after {number - 1} of the {header[0]} words of its first line"
        )


def _width(line: str) -> int:
    """Return how many numbers end a line, its first field left out."""
    numbers = takewhile(_is_number, reversed(line.rstrip().split(" ")[1:]))
    return sum(1 for _ in numbers)


def _vector(line: str, width: int, place: str) -> tuple[str, list[float]]:
    """Return the word of a line and its numbers; UnreadableFile for any other line."""
    fields = line.rstrip().split(" ")
    # words of GloVe 840B may have spaces, as in ". . ."
    start = max(len(fields) - width, 0)
    word, numbers = fields[:start], fields[start:]
    if not width or not word or any(map(_is_number, word[1:])):
        raise UnreadableFile(
            f"{place}: {len(fields) - 1} numbers after the word; allowed: {max(width, 1)}, as on "
            "the other lines"
        )
    try:
        vector = [float(field) for field in numbers]
    except ValueError:
        vector = [math.nan]
    if not all(map(math.isfinite, vector)):
        wrong = next(field for field in numbers if not _is_number(field))
        raise UnreadableFile(f"{place}: {wrong[:40]!r}; allowed: a word and {width} numbers")
    return " ".join(word), vector


def _is_number(field: str) -> bool:
    """True for a finite number."""
    try:
        return math.isfinite(float(field))
    except ValueError:
        return False
