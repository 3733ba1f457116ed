"""The idx format, in which MNIST is distributed.

Two zero bytes, a code of the element type, the number of dimensions, the size of each dimension
as a big-endian 32-bit number, then the elements, the last dimension fastest.
"""

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import Any, Callable, Union

import numpy as np

from ...tools import UsageError

UNSIGNED_BYTE = 0x08


def _content(path: Path) -> bytes:
    """Return the bytes of a file, plain or .gz; UsageError if it cannot be read."""
    opener: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as stream:
            return stream.read()
    except FileNotFoundError:
        raise UsageError(f"there is no {path}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error


def read_idx(path: Union[str, Path], dimensions: int) -> np.ndarray:
    """Return the uint8 array of a file, plain or .gz.

    Raises:
        UsageError: naming the file, unless it holds unsigned bytes in so many ``dimensions``,
            exactly as many as its header says.
    """
    content = _content(Path(path))
    allowed = f"allowed: an idx file of unsigned bytes in {dimensions} dimensions"
    # the format's magic number: zeros, element type, number of dimensions
    start = bytes([0, 0, UNSIGNED_BYTE, dimensions])
    header = len(start) + 4 * dimensions
    if content[: len(start)] != start or len(content) < header:
        raise UsageError(f"{path} begins with {content[:4].hex(' ') or 'nothing'}; {allowed}")
    sizes = struct.unpack(f">{dimensions}I", content[len(start) : header])
    # also files that are longer than announced: they are not what their header says
    if len(content) - header != math.prod(sizes):
        raise UsageError(
            f"{path}: {' x '.join(map(str, sizes))} bytes after its header are announced, "
            f"{len(content) - header} follow"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(sizes)
