"""State of incremental decoding: a dict of tensors, one row for each hypothesis or sentence."""

from functools import lru_cache
from typing import Dict, List, Optional, Tuple, Union

import torch
from torch import Tensor

# names of what belongs to the source begin so; see ``reorder_cache``
PER_SENTENCE = "context_"
ROOM = 16  # positions


class KVCache:
    """Keys or values of R rows; every step appends a position to a buffer with spare room.

    A step copies the buffer once, when the rows change their order, and not again to make it
    longer. Its length is a multiple of ``ROOM``: products and softmax over few odd positions take
    longer.

    Args:
        rows: (R, H, .., d), of a first position.
    """

    def __init__(self, rows: Tensor):
        self.buffer = rows.new_zeros(*rows.shape[:2], ROOM, rows.size(3))  # (R, H, T', d)
        self.length = 0  # T
        # the buffer of the step before is written to again: fresh pages of memory are slow
        self._spare: Optional[Tensor] = None

    def append(self, newest: Tensor) -> None:
        """Add a position (R, H, 1, d), in place."""
        if self.length == self.buffer.size(2):
            room = self.buffer.new_zeros(*newest.shape[:2], ROOM, newest.size(3))
            self.buffer = torch.cat([self.buffer, room], dim=2)
            self._spare = None
        self.buffer[:, :, self.length] = newest[:, :, 0]
        self.length += 1

    def size(self, axis: int) -> int:
        """Return the size of the buffer along ``axis``, as a tensor does."""
        return self.buffer.size(axis)

    def index_select(self, axis: int, order: Tensor) -> "KVCache":
        """Select rows as of a tensor, in place, and return the cache itself."""
        target = None
        # rows only ever become fewer: sentences leave the search
        if self._spare is not None and len(order) <= len(self._spare):
            target = self._spare[: len(order)]
        before, self.buffer = self.buffer, torch.index_select(self.buffer, axis, order, out=target)
        if before.device.type == "cpu":  # on GPUs torch itself keeps freed memory
            self._spare = before
        return self


Cache = Dict[str, Union[Tensor, KVCache]]


def append_to_cache(cache: Cache, name: str, newest: List[Tensor]) -> Tuple[List[Tensor], Tensor]:
    """Store what a step computed for the newest position, and return it for all positions.

    Args:
        cache: the state of the search.
        name: the name of this list in it, such as that of a layer.
        newest: (R, H, 1, d) each.

    Returns:
        (R, H, T', d) each, visible (1, 1, 1, T'), which is False where nothing is yet.
    """
    stored = []
    for number, rows in enumerate(newest):
        key = f"{name}.{number}"
        if key not in cache:
            cache[key] = KVCache(rows)
        entry = cache[key]
        assert isinstance(entry, KVCache)
        entry.append(rows)
        stored.append(entry)
    buffers = [entry.buffer for entry in stored]
    return buffers, _visible(stored[0].length, buffers[0].size(2), buffers[0].device)


@lru_cache(maxsize=64)
def _visible(length: int, room: int, device: torch.device) -> Tensor:
    """Return (1, 1, 1, room), the first ``length`` True, for all layers and rows of a step."""
    # the result is stored: in inference mode later callers could not take gradients with it
    with torch.inference_mode(False):
        return (torch.arange(room, device=device) < length).view(1, 1, 1, -1)


def per_row(values: Tensor, rows: int) -> Tensor:
    """Return what belongs to each sentence once for each of its rows: (B, ..) -> (R, ..).

    The rows of a sentence, its beam, stand together. With one row each, these are the values.
    """
    beam = rows // values.size(0)
    # without its size, torch 1.13 asks the device for it
    return values if beam == 1 else values.repeat_interleave(beam, dim=0, output_size=rows)


def reorder_cache(cache: Cache, new_order: Tensor) -> None:
    """Make row r of the cache what row ``new_order[r]`` was, in place.

    Beam search keeps the rows of a sentence together and drops finished sentences whole: what
    belongs to the source, whose name begins with ``PER_SENTENCE``, is stored once per sentence and
    moves only when sentences are dropped.
    """
    of_sentences = [name for name in cache if name.startswith(PER_SENTENCE)]
    of_rows = [name for name in cache if not name.startswith(PER_SENTENCE)]
    if not of_rows:
        return
    rows, sentences = cache[of_rows[0]].size(0), cache[of_sentences[0]].size(0)
    beam = rows // sentences
    if beam == 1 or new_order.numel() != rows:
        # any row of a sentence says which it is
        sentence_order = new_order.view(-1, beam)[:, 0] // beam  # (B',)
        for name in of_sentences:
            cache[name] = cache[name].index_select(0, sentence_order)
    for name in of_rows:
        cache[name] = cache[name].index_select(0, new_order)
