"""Noise on synthetic sources (Edunov et al. 2018): words are deleted, replaced and moved."""

from typing import Tuple

import torch
from torch import Tensor

from ..common.hashed_random import key_of, uniform

DELETED, REPLACED = 0.1, 0.1  # shares of the words
FARTHEST = 3  # positions that a word may move


def noised(
    words: Tensor, lengths: Tensor, ids: Tensor, key: int, pad: int, filler: int
) -> Tuple[Tensor, Tensor]:
    """Return words (B, T), padded on the right, and their numbers (B,) with noise.

    A word is deleted with probability 0.1, replaced by ``filler`` with probability 0.1, and the
    words are put in the order of i + u, i their positions and u uniform from 0 to 4. Where all
    words of a sentence would be deleted, none is.

    Args:
        words: (B, T), padded on the right.
        lengths: (B,).
        ids: of the sentences (B,), of which the noise is a function.
        key: as well.
        pad: the padding index.
        filler: the index of what replaces words.
    """
    positions = torch.arange(words.size(1), device=words.device)  # (T,)
    inside = positions < lengths.unsqueeze(1)  # (B, T)
    draws = {
        name: uniform(ids, positions, key_of(key, name)) for name in ("delete", "replace", "move")
    }
    stays = inside & (draws["delete"] >= DELETED)
    stays = torch.where(stays.any(dim=1, keepdim=True), stays, inside)
    words = words.masked_fill(draws["replace"] < REPLACED, filler)
    # what is deleted goes behind everything else
    places = positions + (FARTHEST + 1) * draws["move"]
    places = places.masked_fill(~stays, torch.inf)
    words = words.gather(1, places.argsort(dim=1, stable=True))
    left = stays.sum(dim=1)  # (B,)
    return words.masked_fill(positions >= left.unsqueeze(1), pad), left
