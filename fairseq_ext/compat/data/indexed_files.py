"""Data of --dataset-impl lazy and cached: every process reads at its own position."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, Union

from ..patch_registry import PatchedModule, patch
from .data_files import UnreadableFile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    Index = Union[int, np.integer[Any]]


class PositionedFile:
    """A file whose position belongs to this object: forks share that of an ordinary file.

    It has what fairseq calls: seek, readinto and close.
    """

    def __init__(self, path: str):
        self.path = path
        self.position = 0  # in bytes
        self._file = open(path, "rb", buffering=0)

    def seek(self, position: Index) -> None:
        """Read from this byte on."""
        self.position = int(position)

    def readinto(self, numbers: NDArray[Any]) -> None:
        """Fill an array with the bytes from the position on.

        Raises UnreadableFile where the file ends before.
        """
        if not numbers.nbytes:
            return
        target = numbers.data.cast("B")
        filled = 0
        while filled < len(target):
            piece = os.pread(self._file.fileno(), len(target) - filled, self.position + filled)
            if not piece:
                size = os.fstat(self._file.fileno()).st_size
                raise UnreadableFile(
                    f"{self.path}: {size} bytes, and its .idx file says more; "
                    "binarise the data again"
                )
            target[filled : filled + len(piece)] = piece
            filled += len(piece)
        self.position += filled

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@patch(
    "fairseq.data.indexed_dataset",
    because="fairseq 0.12.2: a training opens the file of --dataset-impl lazy before it starts the "
    "processes of --num-workers, which share its position: one reads what another looked for",
)
def forks_read_at_their_own_position(module: PatchedModule) -> None:
    """Open the file of sentences as a PositionedFile."""

    def read_data(self: Any, path: str) -> None:
        self.data_file = PositionedFile(module.data_file_path(path))

    module.IndexedDataset.read_data = read_data


@patch(
    "fairseq.data.indexed_dataset",
    because="fairseq 0.12.2: a training with --dataset-impl cached, the format of data of fairseq "
    "before 0.9, asks for a sentence before it has read any: KeyError",
)
def uncached_sentences_are_read(module: PatchedModule) -> None:
    """Read a sentence that was not prefetched from the file."""
    dataset = module.IndexedCachedDataset
    stock, read = dataset.__getitem__, module.IndexedDataset.__getitem__

    @functools.wraps(stock)
    def __getitem__(self: Any, i: Index) -> Tensor:
        item: Tensor = stock(self, i) if i in self.cache_index else read(self, i)
        return item

    dataset.__getitem__ = __getitem__
