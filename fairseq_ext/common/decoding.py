"""State of incremental decoding: a dict of tensors, one row for each hypothesis or sentence."""

from typing import Dict

from torch import Tensor

Cache = Dict[str, Tensor]
PER_SENTENCE = "context_"


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
