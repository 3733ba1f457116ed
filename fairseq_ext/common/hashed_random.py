"""Random numbers that are a function of keys alone: of a sentence, not of what was drawn before.

A generator's numbers depend on the batch: on its other sentences, and on which worker has it. These
are computed on the device of the keys.
"""

import zlib
from typing import Union

import torch
from torch import Tensor

BITS = 0xFFFFFFFF  # of 32; products of two such numbers stay within int64 as one has 27 bits
FACTOR = 0x45D9F3B  # an odd number; multiplying by it and folding the upper half in mixes all bits


def key_of(*keys: object) -> int:
    """Return a number of 32 bits that depends on the keys, in every process alike."""
    # hash() of a text differs between processes
    return zlib.crc32(repr(keys).encode())


def mixed(numbers: Union[Tensor, int], key: int) -> Tensor:
    """Return numbers of 32 bits, uniform over different numbers and keys: int64 -> int64."""
    mixture = (torch.as_tensor(numbers) ^ key) & BITS
    for _ in range(2):
        mixture = ((mixture ^ (mixture >> 16)) * FACTOR) & BITS
    return mixture ^ (mixture >> 16)


def uniform(rows: Tensor, columns: Tensor, key: int) -> Tensor:
    """Return numbers between 0 and 1, both excluded, float32: rows (R,), columns (C,) -> (R, C)."""
    grid = mixed(mixed(rows, key).unsqueeze(1) + columns * 0x9E3779B1, key)
    # of the 23 highest bits: float32 holds no more, with a half
    return ((grid >> 9).float() + 0.5) / (1 << 23)
