"""State of incremental decoding: a dict of tensors, one row for each hypothesis or sentence."""

from functools import lru_cache
from typing import Dict, List, Optional, Tuple, Union

import torch
from torch import Tensor

PER_SENTENCE = "context_"
ROOM = 16  # positions


class Growing:
    """Keys or values of R rows, to which every step adds a position, in a buffer with more room.

    A step copies it once, when the rows change their order, and not again to make it longer. Its
    length is a multiple of ``ROOM``: products and softmax over few odd positions take longer.

    Args:
        rows: (R, H, .., d), of a first position.
    """

    def __init__(self, rows: Tensor):
        self.buffer = rows.new_zeros(*rows.shape[:2], ROOM, rows.size(3))  # (R, H, T', d)
        self.length = 0  # T
        self._other: Optional[Tensor] = None  # the buffer of the step before: new pages are slow

    def append(self, newest: Tensor) -> None:
        """(R, H, 1, d), in place."""
        if self.length == self.buffer.size(2):
            room = self.buffer.new_zeros(*newest.shape[:2], ROOM, newest.size(3))
            self.buffer = torch.cat([self.buffer, room], dim=2)
            self._other = None
        self.buffer[:, :, self.length] = newest[:, :, 0]
        self.length += 1

    def size(self, axis: int) -> int:
        """As of a tensor; of the axes but T'."""
        return self.buffer.size(axis)

    def index_select(self, axis: int, order: Tensor) -> "Growing":
        """As of a tensor, along the rows; in place."""
        fits = self._other is not None and len(order) <= len(self._other)
        other = self._other[: len(order)] if fits else None
        before, self.buffer = self.buffer, torch.index_select(self.buffer, axis, order, out=other)
        if before.device.type == "cpu":
            self._other = before
        return self


Cache = Dict[str, Union[Tensor, Growing]]


def remember(cache: Cache, name: str, newest: List[Tensor]) -> Tuple[List[Tensor], Tensor]:
    """Keys, values or whatever a step makes of the newest position, with those of all before.

    Args:
        cache: where they are kept.
        name: of this list.
        newest: (R, H, 1, d) each.

    Returns:
        (R, H, T', d) each, visible (1, 1, 1, T'), which is False where nothing is yet.
    """
    found = []
    for number, one in enumerate(newest):
        place = f"{name}.{number}"
        if place not in cache:
            cache[place] = Growing(one)
        cache[place].append(one)
        found.append(cache[place].buffer)
    return found, _visible(cache[f"{name}.0"].length, found[0].size(2), found[0].device)


@lru_cache(maxsize=64)
def _visible(length: int, room: int, device: torch.device) -> Tensor:
    """(1, 1, 1, room), the first ``length`` True: the same for all layers and rows of a step."""
    with torch.inference_mode(False):  # whoever comes next may want gradients
        return (torch.arange(room, device=device) < length).view(1, 1, 1, -1)


def reorder_cache(cache: Cache, new_order: Tensor) -> None:
    """Make row r of the cache what row ``new_order[r]`` was, in place.

    Beam search keeps the rows of a sentence together and drops finished sentences whole: what
    belongs to the source, whose name contains "context_", is stored once per sentence and moves
    only when sentences are dropped.
    """
    per_sentence = [name for name in cache if PER_SENTENCE in name]
    per_row = [name for name in cache if PER_SENTENCE not in name]
    if not per_row:
        return
    rows, sentences = cache[per_row[0]].size(0), cache[per_sentence[0]].size(0)
    beam = rows // sentences
    if beam == 1 or new_order.numel() != rows:
        kept = new_order.view(-1, beam)[:, 0] // beam  # (B',)
        for name in per_sentence:
            cache[name] = cache[name].index_select(0, kept)
    for name in per_row:
        cache[name] = cache[name].index_select(0, new_order)
