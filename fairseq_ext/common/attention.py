"""Additive attention (Bahdanau et al. 2014) as a function, and its softmax.

Dimensions: B sentences, R = B * K rows (K beams of a sentence stand together), S source
positions, A attention, C values. Masks are bool, True = padding.
"""

from typing import Tuple

import torch
from torch import Tensor


def masked_softmax(scores: Tensor, masked: Tensor) -> Tensor:
    """Return softmax over the last axis, 0 where ``masked``; in single precision at least.

    Under autocast, too: 16 bits are too few for a sum of exponentials.
    """
    at_least_single = torch.promote_types(scores.dtype, torch.float32)
    return scores.masked_fill(masked, float("-inf")).softmax(dim=-1, dtype=at_least_single)


def additive_attention(
    query: Tensor, keys: Tensor, values: Tensor, energy: Tensor, padding: Tensor
) -> Tuple[Tensor, Tensor]:
    """Return sum_i a_i values_i with a = softmax(e), e_i = energy . tanh(keys_i + query).

    Args:
        query: (R, A).
        keys: (B, S, A), once per sentence.
        values: (B, S, C).
        energy: (A,).
        padding: (B, S); no row may be padding alone.

    Returns:
        context (R, C), weights (R, S).
    """
    sentences, positions, _ = keys.shape
    query = query.view(sentences, -1, 1, query.size(1))  # (B, K, 1, A)
    # tanh(x) = 2 sigmoid(2 x) - 1, which is faster; the softmax takes no notice of the -1
    squashed = torch.sigmoid(2 * keys.unsqueeze(1) + 2 * query)  # (B, K, S, A)
    scores = squashed @ (2 * energy)  # (B, K, S)
    weights = masked_softmax(scores, padding.unsqueeze(1)).type_as(scores)  # (B, K, S)
    context = weights @ values  # (B, K, C)
    return context.flatten(0, 1), weights.view(-1, positions)
