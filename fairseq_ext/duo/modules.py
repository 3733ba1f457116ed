"""The Duo Transformer, the equations of arXiv 2003.01371, Sec. 3.2 - 3.4, in plain torch.

Two embeddings S and P of the same tokens make two streams of states, x_S and x_P. In a layer::

    A_S = MultiHead(Q = x_P, K = x_P, V = x_S)                                          (Eq. 4)
    A_P = MultiHead(Q = x_S, K = x_S, V = x_P)                                          (Eq. 5)
    x_S' = LN(x_S + A_P),   x_P' = LN(x_P + A_S)        duo normalisation               (Eq. 6)
    x_S' = LN(x_S + A_S),   x_P' = LN(x_P + A_P)        without it

and then the same feed-forward sub-layer for both. Attention over the encoder takes its keys from
one of the encoder's streams and its values from the other in the same way. The fusion layer and
the output matrix (Sec. 3.3), V words, E_S and E_P the embeddings as they are stored::

    h = W_F [h_S ; h_P],   logits = ([E_S ; E_P] W_out) h                               with fusion
    h = (h_S + h_P) / 2,   logits = (E_S W_S) h                                         without

where W_S maps the width of S to D (the identity where that is D already). With one stream the
equations are those of a stock Transformer, and so is the function. Lists over streams are in the
order S, P; z numbers a stream and N - 1 - z is the other one.

Dimensions: B sentences, R rows (R = B, or B * beam when decoding), T positions, S source positions,
N streams (1 or 2), D model, F feed-forward, H heads, V vocabulary, W_z width of embedding z.
Masks are bool, True = padding.
"""

import math
from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..common import products
from ..common.decoding import PER_SENTENCE, Cache, append_to_cache
from ..common.dropout import RetainsDropout, dropout
from ..common.layers import Linear, linear
from ..common.sentence_steps import SentenceSteps
from ..common.transformer import Positions, TransformerSize, attend, projection
from .search_step import duo_steps

Streams = List[Tensor]
NORMS = ("decoder", "all", "off")


@dataclass
class DuoSize(TransformerSize):
    """Sizes, dropout rates and switches; raises ValueError with the option's name.

    ``streams``: N. ``share_kv``: K and V of one embedding are one projection. ``duo_norm``: where
    Eq. 6 holds.
    """

    streams: int = 2
    share_kv: bool = True
    duo_norm: str = "decoder"
    fusion: bool = True

    def __post_init__(self):
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
        """Per stream (R, T, D)."""
        # Eq. 6: S is normalised with what P has attended to
        if self.crossed:
            changes = changes[::-1]
        return [
            norm(state + dropout(change, self.dropout, self.is_dropping))
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
            hidden = dropout(hidden, size.activation_dropout, self.is_dropping)
            change = dropout(self.feed_forward_out(hidden), size.dropout, self.is_dropping)
            outputs.append(self.feed_forward_norm(state + change))
        return outputs


class DuoEmbedding(RetainsDropout, nn.Module):
    """E_S and E_P of one dictionary, each with a learnt map to D if it is not that wide.

    Args:
        tables: one embedding per stream, (V, W_z), of one padding index.
        embed_dim: D.
        dropout: on sums of vectors and positions.
    """

    def __init__(self, tables: Sequence[nn.Embedding], embed_dim: int, dropout: float = 0.0):
        super().__init__()
        self.tables = cast(Sequence[nn.Embedding], nn.ModuleList(tables))
        assert tables[0].padding_idx is not None
        self.adapters = nn.ModuleList(
            nn.Identity()
            if table.embedding_dim == embed_dim
            else linear(table.embedding_dim, embed_dim, bias=False)
            for table in tables
        )
        # both tables belong to one dictionary
        self.padding_index = tables[0].padding_idx
        self.positions = Positions(embed_dim, self.padding_index)
        self.scale, self.dropout = math.sqrt(embed_dim), dropout

    def forward(self, tokens: Tensor, only_last: bool = False) -> Streams:
        """Tokens (R, T) -> per stream sqrt(D) E_z[token] W_z + position: (R, T, D) or (R, 1, D)."""
        positions = self.positions(tokens, only_last)
        # positions count all tokens before the newest one
        tokens = tokens[:, -1:] if only_last else tokens
        return [
            dropout(self.scale * adapt(table(tokens)) + positions, self.dropout, self.is_dropping)
            for table, adapt in zip(self.tables, self.adapters)
        ]


class DuoEncoder(nn.Module):
    """Embeddings and layers; both streams of the last layer are what a decoder attends to.

    Args:
        size: sizes, dropout rates and switches.
        embedding: of the source's dictionary.
    """

    def __init__(self, size: DuoSize, embedding: DuoEmbedding):
        super().__init__()
        self.embedding = embedding
        layers = nn.ModuleList(DuoLayer(size, decoder=False) for _ in range(size.layers))
        self.layers = cast(Sequence[DuoLayer], layers)

    def encode(self, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        """(B, S) -> streams side by side (B, S, N * D), padding (B, S)."""
        padding = tokens.eq(self.embedding.padding_index)  # (B, S)
        visible = ~padding[:, None, None, :]  # (B, 1, 1, S)
        states = self.embedding(tokens)
        for layer in self.layers:
            # both streams run side by side through all layers
            states = layer.attend_self(states, visible, causal=False, cache=None, name="")
            states = layer.feed_forward(states)
        # side by side: fairseq reorders a single tensor when sentences leave the search
        return torch.cat(states, dim=-1), padding


class DuoDecoder(nn.Module):
    """Embeddings, layers, fusion and the tied output matrix.

    Args:
        size: sizes, dropout rates and switches.
        embedding: of the target's dictionary; its tables are also in the output matrix.
    """

    def __init__(self, size: DuoSize, embedding: DuoEmbedding):
        super().__init__()
        self.size, self.embedding = size, embedding
        layers = nn.ModuleList(DuoLayer(size, decoder=True) for _ in range(size.layers))
        self.layers = cast(Sequence[DuoLayer], layers)
        if size.fusion:
            widths = sum(table.embedding_dim for table in embedding.tables)
            self.fuse = linear(size.streams * size.embed_dim, size.embed_dim, bias=False)  # W_F
            self.project = linear(widths, size.embed_dim, bias=False)  # W_out

    def decode(
        self,
        prev_tokens: Tensor,
        context: Tensor,
        context_padding: Tensor,
        cache: Optional[Cache] = None,
        need_weights: bool = False,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Return the states that predict the token after each of ``prev_tokens``.

        Args:
            prev_tokens: (R, T), padded on the right or not at all.
            context: the encoder's streams (B, S, N * D); R is a multiple of B and the rows of one
                sentence stand together.
            context_padding: (B, S).
            cache: state of incremental decoding, filled here; only the newest token is then
                computed, and the context is read at the first step alone.
            need_weights: also return the last layer's attention over the context.

        Returns:
            h (R, T, D), or (R, 1, D) with a cache; attention (R, T, S) or None.
        """
        incremental = cache is not None
        cache = {} if cache is None else cache
        # a search comes here for every word, and reads the source once
        if PER_SENTENCE + "visible" not in cache:
            self._read(context, context_padding, cache)
        visible = cast(Tensor, cache[PER_SENTENCE + "visible"])
        # x_S and x_P before the first layer, (R, T, D) each
        states = self.embedding(prev_tokens, only_last=incremental)
        weights, last = None, len(self.layers) - 1
        for index, layer in enumerate(self.layers):
            # a whole sequence is computed at once: its keys and values need not be stored
            layer_cache = cache if incremental else None
            states = layer.attend_self(
                states, None, causal=True, cache=layer_cache, name=str(index)
            )
            keys_values: List[Streams] = [
                [cast(Tensor, cache[name]) for name in names]
                for names in self._context_names(index, layer)
            ]
            states, weights = layer.attend_context(
                states, keys_values, visible, need_weights and index == last
            )
            states = layer.feed_forward(states)
        return self.close(states), weights

    def close(self, states: Streams) -> Tensor:
        """Return h of the last layer's h_S and h_P (.., D)."""
        if self.size.fusion:
            return cast(Tensor, self.fuse(torch.cat(states, dim=-1)))  # [h_S ; h_P] W_F
        # one stream is its own mean: a stock Transformer
        return torch.stack(states).mean(dim=0)

    def sentence_steps(
        self, source: Tensor, rows: int, steps: int, need_attention: bool
    ) -> Optional[SentenceSteps]:
        """Return the steps of a search for one sentence (S, N * D), None if something hinders.

        They return the attention, needed or not.
        """
        parts = DuoDecoder, DuoLayer, DuoAttention, DuoNorm, DuoEmbedding
        return duo_steps(self, source, rows, steps, *parts)

    def _context_names(self, index: int, layer: DuoLayer) -> List[List[str]]:
        """Return the names in the cache of the source's keys and values, for each stream."""
        parts = range(layer.context_attention.parts)
        return [
            [f"{PER_SENTENCE}{index}.{z}.{number}" for number in parts]
            for z in range(self.size.streams)
        ]

    def _read(self, context: Tensor, padding: Tensor, cache: Cache) -> None:
        """Store the keys and values of the source in the cache, once per sentence."""
        cache[PER_SENTENCE + "visible"] = ~padding[:, None, None, :]  # (B, 1, 1, S)
        streams = context.chunk(self.size.streams, dim=-1)  # (B, S, D) each
        for index, layer in enumerate(self.layers):
            keys_values = layer.context_attention.keys_values(streams)
            for names, parts in zip(self._context_names(index, layer), keys_values):
                cache.update(zip(names, parts))

    def logits(self, states: Tensor) -> Tensor:
        """Return the logits: h (R, T, D) -> (R, T, V)."""
        tables = [table.weight for table in self.embedding.tables]  # each (V, W_z)
        if not self.size.fusion:
            adapt = self.embedding.adapters[0]
            # (E_S W_S) h
            return products.linear(states, products.compute_once(lambda: adapt(tables[0]), self))
        # [E_S ; E_P] W_out is made once for many tokens; for few, h goes the other way round
        width, inner, tokens = self.project.in_features, states.size(-1), states[..., 0].numel()
        if products.active_cache() is not None or tokens * (width - inner) > width * inner:
            output_matrix = products.compute_once(
                lambda: self.project(torch.cat(tables, dim=-1)), self
            )
            return products.linear(states, output_matrix)  # ([E_S ; E_P] W_out) h
        widths = [table.size(1) for table in tables]
        # h W_out^T, split where E_S ends and E_P begins: the two products add up to the same logits
        parts = states.matmul(self.project.weight).split(widths, dim=-1)
        return cast(Tensor, sum(products.linear(part, table) for part, table in zip(parts, tables)))
