"""Parts of Transformers that at least two systems use.

Dimensions: R rows, B sentences, T positions, S attended positions, D model, d width of a head.
"""

import math
from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .autocast import has_bfloat16
from .layers import Linear
from .sizes import check_sizes

# with few queries in many rows, products are faster than torch's CPU kernel
FEW_QUERIES = 16
MANY_NUMBERS = 1 << 13  # of all queries
HALF = torch.bfloat16, torch.float16
# positions up to which products beat torch's CPU kernel in training in bfloat16
SHORT_SEQUENCE = 128


@dataclass(frozen=True)
class TransformerSize:
    """Sizes and dropout rates; ValueError with the option's name for one out of range."""

    embed_dim: int
    ffn_dim: int
    heads: int
    layers: int
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0

    def __post_init__(self) -> None:
        check_sizes(self, ffn_dim="--ffn-embed-dim", heads="--attention-heads")
        if self.embed_dim % self.heads:
            raise ValueError(
                f"--attention-heads {self.heads}: must divide --embed-dim {self.embed_dim}"
            )
        if self.embed_dim % 2:
            raise ValueError(f"--embed-dim {self.embed_dim}: must be even (sinusoidal positions)")


def projection(inputs: int, *outputs: int) -> Linear:
    """Return projections of one input side by side, Xavier / sqrt 2 each.

    (.., inputs) -> (.., sum(outputs))
    """
    layer = Linear(inputs, sum(outputs))
    # as fairseq does for queries, keys and values of one width
    for weight in layer.weight.split(outputs):
        nn.init.xavier_uniform_(weight, gain=1 / math.sqrt(2))
    return layer


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    visible: Optional[Tensor],
    dropout: float,
    causal: bool = False,
    need_weights: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:
    """Return softmax(query key^T / sqrt(d)) value; the first axes are batch and head.

    Query (.., T, d), key and value (.., S, d); ``visible`` (.., 1, S) is False where no query
    may look; ``causal`` (T = S): position t sees positions <= t. Returns (.., T, d) and, with
    ``need_weights``, the attention (.., T, S).
    """
    if not need_weights:
        if _has_short_products(query, key):
            return _short(query, key, value, visible, dropout, causal), None
        has_kernel = hasattr(F, "scaled_dot_product_attention")  # torch 2.0
        if has_kernel and (causal or not _is_of_search_on_cpu(query)):
            return _fused(query, key, value, visible, dropout, causal), None
    scores = (query / math.sqrt(query.size(-1))) @ key.transpose(-2, -1)  # (.., T, S)
    if visible is not None:
        scores.masked_fill_(~visible, float("-inf"))
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores.masked_fill_(later, float("-inf"))
    # in single precision at least, as in fairseq
    exact = torch.promote_types(scores.dtype, torch.float)
    weights = torch.softmax(scores, dim=-1, dtype=exact).to(value.dtype)
    mixed = (F.dropout(weights, dropout) if dropout else weights) @ value
    return mixed, weights if need_weights else None


def _is_of_search_on_cpu(query: Tensor) -> bool:
    """True for few queries of many rows of a search: torch's CPU kernel is slower than products."""
    is_few = query.size(-2) <= FEW_QUERIES and query.numel() > MANY_NUMBERS
    return query.device.type == "cpu" and is_few and not torch.is_grad_enabled()


def _has_short_products(query: Tensor, key: Tensor) -> bool:
    """True for training in bfloat16 on a CPU that multiplies it, with few positions."""
    # elsewhere oneDNN does not multiply bfloat16, and torch does at a fraction of the speed
    return (
        query.device.type == "cpu"
        and query.dtype == torch.bfloat16
        and torch.is_grad_enabled()
        and max(query.size(-2), key.size(-2)) <= SHORT_SEQUENCE
        and has_bfloat16()
    )


def _short(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    visible: Optional[Tensor],
    dropout: float,
    causal: bool,
) -> Tensor:
    """Return the attention (.., T, d) by batched products in bfloat16, softmax in float32."""
    *rows, width = query.shape  # (.., T), d
    # copies of strided factors: oneDNN multiplies those at a fifth of the speed
    queries, keys, values = (part.reshape(-1, *part.shape[-2:]) for part in (query, key, value))
    bias = query.new_zeros(1, dtype=torch.float32)
    if visible is not None:
        bias = bias.masked_fill(~visible, float("-inf"))
    if causal:
        size = rows[-1], key.size(-2)
        bias = bias + bias.new_full(size, float("-inf")).triu(1)
    products = torch.bmm(queries, keys.transpose(1, 2)).float().view(*rows, -1)  # (.., T, S)
    scores = torch.add(bias, products, alpha=width**-0.5)
    weights = torch.softmax(scores, dim=-1).to(value.dtype)
    weights = F.dropout(weights, dropout) if dropout else weights
    return torch.bmm(weights.flatten(0, -3), values).view(*rows, -1)  # (.., T, d)


def _fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    visible: Optional[Tensor],
    dropout: float,
    causal: bool,
) -> Tensor:
    """Return torch's own attention (.., T, d).

    In single precision in training on CPUs, where its backward pass in 16 bits is slower.
    """
    options: Dict[str, Any] = {"attn_mask": visible, "dropout_p": dropout, "is_causal": causal}
    if query.device.type == "cpu" and query.dtype in HALF and torch.is_grad_enabled():
        with torch.autocast("cpu", enabled=False):  # which would take 16 bits again
            outputs = F.scaled_dot_product_attention(
                query.float(), key.float(), value.float(), **options
            )
            return outputs.to(value.dtype)
    return F.scaled_dot_product_attention(query, key, value, **options)


class Positions(nn.Module):
    """Sinusoidal positions as fairseq counts them: padding_index + 1 is the first real token."""

    table: Tensor

    def __init__(self, embed_dim: int, padding_index: int, length: int = 256):
        super().__init__()
        self.embed_dim, self.padding_index = embed_dim, padding_index
        self.register_buffer("table", self._sinusoids(length), persistent=False)

    def _sinusoids(self, length: int, device: Optional[str] = None) -> Tensor:
        """Return the vectors of so many positions, (padding_index + 1 + length, D)."""
        half = self.embed_dim // 2
        # all sines, then all cosines, the slowest at a rate of 1/10000, as in fairseq
        rate = torch.arange(half, device=device) * -(math.log(10000) / max(1, half - 1))
        rows = length + self.padding_index + 1
        places = torch.arange(rows, device=device).unsqueeze(1)
        angle = places * torch.exp(rate)  # (rows, D/2)
        table = torch.cat([angle.sin(), angle.cos()], dim=1)  # (rows, D)
        table[self.padding_index] = 0
        return table

    def forward(self, tokens: Tensor, only_last: bool = False) -> Tensor:
        """Return the vectors of the positions of tokens (B, T), (B, T, D); zero at padding.

        With ``only_last`` that of the newest position, (1, 1, D), the same for every row.
        """
        length = tokens.size(1)
        if length + self.padding_index >= self.table.size(0):
            # twice the length: a search, which adds a position per step, builds few tables
            # on the CPU: a GPU rounds sines otherwise, and the first table was made there
            self.table = self._sinusoids(2 * length, "cpu").to(self.table)
        if only_last:
            # rows of a search begin with a word and hold no padding
            return self.table[self.padding_index + length].view(1, 1, -1)
        # padding takes no number, and gets the row of zeros
        real = tokens.ne(self.padding_index).long()  # (B, T)
        return self.table[real.cumsum(dim=1) * real + self.padding_index]
