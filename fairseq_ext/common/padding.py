"""Padding of batches: moved to the end of the rows, kept there by a reversal, left out of a mean.

Dimensions: B sentences, S positions, I numbers at each; R rows. Masks are bool, True = padding.
"""

import torch
from torch import Tensor


def leading_padding(tokens: Tensor, padding_index: int) -> Tensor:
    """Return the number of padding symbols in front of each row: (B, S) -> (B, 1)."""
    # the product is 1 as long as no real word has come
    return tokens.eq(padding_index).long().cumprod(dim=1).sum(dim=1, keepdim=True)


def align_left(tokens: Tensor, padding_index: int) -> Tensor:
    """Return the tokens with the padding in front of each row moved to its end, (B, S)."""
    position = torch.arange(tokens.size(1), device=tokens.device)
    # rows are rotated by their leading padding: the order of the words stays as it is
    return tokens.gather(1, (position + leading_padding(tokens, padding_index)) % tokens.size(1))


def put_back(values: Tensor, leading: Tensor, dim: int) -> Tensor:
    """Return what was made of the result of ``align_left`` at the places of the tokens again.

    Args:
        values: (R, ..); their dimension ``dim`` is that of the positions, S.
        leading: ``leading_padding`` of the tokens, (R, 1).
    """
    position = torch.arange(values.size(dim), device=values.device)
    index = (position - leading) % values.size(dim)  # (R, S)
    shape = [1] * values.dim()
    shape[0], shape[dim] = index.shape
    return values.gather(dim, index.view(shape).expand_as(values))


def reversal(padding: Tensor) -> Tensor:
    """Return positions (B, S) that reverse every sentence within its length.

    Padding stays at the end.

    The permutation is its own inverse: ``reorder(reorder(x, p), p)`` is x.
    """
    length = (~padding).sum(dim=1, keepdim=True)  # (B, 1)
    position = torch.arange(padding.size(1), device=padding.device)
    # behind a sentence the modulus counts down from the last position: padding stays padding
    return (length - 1 - position) % padding.size(1)


def reorder(rows: Tensor, positions: Tensor) -> Tensor:
    """Return rows[b, positions[b, s]] at [b, s]; (B, S, I), (B, S) -> (B, S, I)."""
    size, length, width = rows.shape
    first = length * torch.arange(size, device=rows.device).unsqueeze(1)  # (B, 1)
    # whole rows of I numbers are copied; ``gather`` would need an index for each number
    flat = rows.reshape(size * length, width)
    return flat.index_select(0, (first + positions).view(-1)).view(size, length, width)


def mean_of_real(values: Tensor, padding: Tensor) -> Tensor:
    """Return the mean over the positions that are not padding: (B, S, I), (B, S) -> (B, I)."""
    real = (~padding).unsqueeze(2).type_as(values)  # (B, S, 1)
    return (values * real).sum(dim=1) / real.sum(dim=1)
