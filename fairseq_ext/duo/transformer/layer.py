"""A layer of the Duo Transformer, Eq. 4 - 6 of arXiv 2003.01371, in plain torch.

Two embeddings S and P of the same tokens make two streams of states, x_S and x_P. In a layer::

    A_S = MultiHead(Q = x_P, K = x_P, V = x_S)                                          (Eq. 4)
    A_P = MultiHead(Q = x_S, K = x_S, V = x_P)                                          (Eq. 5)
    x_S' = LN(x_S + A_P),   x_P' = LN(x_P + A_S)        duo normalisation               (Eq. 6)
    x_S' = LN(x_S + A_S),   x_P' = LN(x_P + A_P)        without it

and then the same feed-forward sub-layer for both. Attention over the encoder takes its keys from
one of the encoder's streams and its values from the other in the same way. With one stream the
equations are those of a stock Transformer. Lists over streams are in the order S, P; z numbers a
stream and N - 1 - z is the other one.

Dimensions: B sentences, R rows (R = B, or B * beam when decoding), T positions, S source positions,
N streams (1 or 2), D model, F feed-forward, H heads. Masks are bool, True = padding.
"""

from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...common.decoding import Cache, append_to_cache
from ...common.dropout import RetainsDropout
from ...common.layers import Linear, linear
from ...common.transformer import TransformerSize, attend, projection

Streams = List[Tensor]
NORMS = ("decoder", "all", "off")


@dataclass(frozen=True)
class DuoSize(TransformerSize):
    """Sizes, dropout rates and switches; ValueError with the option's name for one out of range.

    streams: N. share_kv: K and V of one embedding are one projection. duo_norm: where Eq. 6 holds.
    fusion: W_F and W_out close the decoder (modules.py).
    """

    streams: int = 2
    share_kv: bool = True
    duo_norm: str = "decoder"
    fusion: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.duo_norm not in NORMS:
            raise ValueError(f"--duo-norm {self.duo_norm}: must be one of {', '.join(NORMS)}")


class DuoAttention(RetainsDropout, nn.Module):
    """Eq. 4 and 5: A_z = MultiHead(Q = x_other, K = x_other, V = x_z) for each stream z.

    Each stream has its query map and its output map. With ``share_kv`` one map makes the keys of a
    stream (for the other one's attention) and its values (for its own): four maps on the input side
    where ordinary attention has three; without it there are six. One stream is ordinary attention.
    """

    def __init__(self, size: DuoSize):
        super().__init__()
        self.heads, self.dropout = size.heads, size.attention_dropout
        width, streams = size.embed_dim, range(size.streams)
        # K = V of one embedding (Sec. 3.2.1), or a projection each
        parts = [width] if size.share_kv else [width, width]
        self.parts = len(parts)
        self.query = nn.ModuleList(projection(width, width) for _ in streams)
        self.key_value = nn.ModuleList(projection(width, *parts) for _ in streams)
        self.output = nn.ModuleList(linear(width, width) for _ in streams)

    def keys_values(self, states: Sequence[Tensor]) -> List[Streams]:
        """Return [keys, values], or [both in one], per stream: (B, S, D) -> (B, H, S, D/H) each."""
        keys_values = []
        for state, layer in zip(states, self.key_value):
            sentences, length, _ = state.shape
            # (B, S, 1 or 2, H, D/H)
            projected = layer(state).view(sentences, length, self.parts, self.heads, -1)
            keys_values.append(list(projected.permute(2, 0, 3, 1, 4).unbind(0)))
        return keys_values

    def forward(
        self,
        states: Streams,
        keys_values: List[Streams],
        visible: Optional[Tensor] = None,
        causal: bool = False,
        need_weights: bool = False,
    ) -> Tuple[Streams, Optional[Tensor]]:
        """Return what the states, per stream (R, T, D), read from ``keys_values`` (B, H, S, D/H).

        ``visible`` (B, 1, 1, S) is False where nobody may look. The rows of one sentence stand
        together and read its keys and values where they are.

        Returns:
            A_S and A_P, each (R, T, D); with ``need_weights`` the attention averaged over heads
            and streams (R, T, S).
        """
        rows, length, _ = states[0].shape
        sentences = keys_values[0][0].size(0)
        dropout = self.dropout if self.is_dropping else 0.0
        outputs, shares = [], []
        for z, output in enumerate(self.output):
            # 0 for a single stream, which is its own other: ordinary attention
            other = len(states) - 1 - z
            # with share_kv the list has one entry, which is the first and the last
            key, value = keys_values[other][0], keys_values[z][-1]
            # queries and keys are of one embedding, which alone decides about the weights
            query = self.query[other](states[other]).view(sentences, -1, self.heads, key.size(-1))
            query = query.transpose(1, 2)  # (B, H, R/B * T, D/H)
            mixed, weights = attend(query, key, value, visible, dropout, causal, need_weights)
            outputs.append(output(mixed.transpose(1, 2).reshape(rows, length, -1)))  # A_z (R, T, D)
            if weights is not None:
                shares.append(weights.mean(dim=1).reshape(rows, length, -1))
        # both maps of weights are shown as one
        return outputs, torch.stack(shares).mean(dim=0) if need_weights else None


class DuoNorm(RetainsDropout, nn.Module):
    """x_S' = LN(x_S + A_P), x_P' = LN(x_P + A_S) (Eq. 6), or uncrossed LN(x_z + A_z).

    Each stream has its gain and bias.

    Args:
        size: D, N and the dropout rate, which is on A_z.
        crossed: True for Eq. 6.
    """

    def __init__(self, size: DuoSize, crossed: bool):
        super().__init__()
        self.crossed, self.dropout = crossed, size.dropout
        self.norms = nn.ModuleList(nn.LayerNorm(size.embed_dim) for _ in range(size.streams))

    def forward(self, states: Streams, changes: Streams) -> Streams:
        """Return x' of each stream (R, T, D) from its x and its A, or from the other one's A."""
        # Eq. 6: S is normalised with what P has attended to
        if self.crossed:
            changes = changes[::-1]
        return [
            norm(state + self.drop(change))
            for norm, state, change in zip(self.norms, states, changes)
        ]


class DuoLayer(RetainsDropout, nn.Module):
    """Duo self-attention, in the decoder also duo attention over the encoder, feed-forward.

    Args:
        size: sizes, dropout rates and switches.
        decoder: True for a layer with attention over the encoder.
    """

    def __init__(self, size: DuoSize, decoder: bool):
        super().__init__()
        self.size = size
        # by default in the decoder alone (Sec. 3.4)
        crossed = size.duo_norm == "all" or (decoder and size.duo_norm == "decoder")
        self.self_attention = DuoAttention(size)
        self.self_attention_norm = DuoNorm(size, crossed)
        if decoder:
            self.context_attention = DuoAttention(size)
            self.context_attention_norm = DuoNorm(size, crossed)
        self.feed_forward_in = Linear(size.embed_dim, size.ffn_dim)
        self.feed_forward_out = Linear(size.ffn_dim, size.embed_dim)
        self.feed_forward_norm = nn.LayerNorm(size.embed_dim)

    def attend_self(
        self,
        states: Streams,
        visible: Optional[Tensor],
        causal: bool,
        cache: Optional[Cache],
        name: str,
    ) -> Streams:
        """Return the states after self-attention; with a ``cache``, of the newest position."""
        keys_values = self.self_attention.keys_values(states)
        if cache is not None:
            # one entry of the cache for each stream and each of its parts
            for z, parts in enumerate(keys_values):
                keys_values[z], visible = append_to_cache(cache, f"{name}.{z}", parts)
        # the cache holds no later position: nothing is left to hide
        changes, _ = self.self_attention(states, keys_values, visible, causal and cache is None)
        return self.self_attention_norm(states, changes)

    def attend_context(
        self, states: Streams, keys_values: List[Streams], visible: Tensor, need_weights: bool
    ) -> Tuple[Streams, Optional[Tensor]]:
        """Return the states after attention to the source, and its weights (R, T, S) or None."""
        changes, weights = self.context_attention(
            states, keys_values, visible, need_weights=need_weights
        )
        return self.context_attention_norm(states, changes), weights

    def feed_forward(self, states: Streams) -> Streams:
        """Return the states after the feed-forward sub-layer, the same for both streams."""
        size, outputs = self.size, []
        # the streams meet in attention and norm alone; here each is mapped by itself
        for state in states:
            hidden = F.relu(self.feed_forward_in(state))  # (R, T, F)
            hidden = self.drop(hidden, size.activation_dropout)
            change = self.drop(self.feed_forward_out(hidden), size.dropout)
            outputs.append(self.feed_forward_norm(state + change))
        return outputs
