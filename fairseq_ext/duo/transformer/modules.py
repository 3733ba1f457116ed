"""The Duo Transformer of arXiv 2003.01371, Sec. 3.2 - 3.4, in plain torch.

Two embeddings S and P of the same tokens make two streams of states, which pass the layers of
layer.py (Eq. 4 - 6). The fusion layer and the output matrix (Sec. 3.3), V words, E_S and E_P the
embeddings as they are stored::

    h = W_F [h_S ; h_P],   logits = ([E_S ; E_P] W_out) h                               with fusion
    h = (h_S + h_P) / 2,   logits = (E_S W_S) h                                         without

where W_S maps the width of S to D (the identity where that is D already). With one stream the
equations are those of a stock Transformer, and so is the function.

Dimensions: those of layer.py, V vocabulary, W_z width of embedding z.
"""

import math
from typing import List, Optional, Sequence, Tuple, cast

import torch
from torch import Tensor, nn

from ...common import products
from ...common.decoding import PER_SENTENCE, Cache
from ...common.dropout import RetainsDropout
from ...common.layers import linear
from ...common.sentence_steps import SentenceSteps
from ...common.transformer import Positions
from .layer import DuoLayer, DuoSize, Streams
from .sentence_steps import duo_steps


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
        """Return sqrt(D) E_z[token] W_z + position of each stream, (R, T, D), of tokens (R, T).

        With ``only_last`` of the last position alone, (R, 1, D).
        """
        positions = self.positions(tokens, only_last)
        # positions count all tokens before the newest one
        tokens = tokens[:, -1:] if only_last else tokens
        return [
            self.drop(self.scale * adapt(table(tokens)) + positions)
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
        """Return the streams side by side (B, S, N * D) and the padding, of tokens (B, S)."""
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
            self._cache_context(context, context_padding, cache)
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
        return self.merge_streams(states), weights

    def merge_streams(self, states: Streams) -> Tensor:
        """Return h (.., D) of the last layer's h_S and h_P: their fusion, or their mean."""
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
        return duo_steps(self, source, rows, steps, DuoDecoder, DuoEmbedding)

    def _context_names(self, index: int, layer: DuoLayer) -> List[List[str]]:
        """Return the names in the cache of the source's keys and values, for each stream."""
        parts = range(layer.context_attention.parts)
        return [
            [f"{PER_SENTENCE}{index}.{z}.{number}" for number in parts]
            for z in range(self.size.streams)
        ]

    def _cache_context(self, context: Tensor, padding: Tensor, cache: Cache) -> None:
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
