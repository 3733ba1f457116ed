"""The steps of a decoder (modules.py) in a search for one sentence.

One product makes a stream's query, key and value; both streams pass the feed-forward sub-layer as
rows of one matrix. Dimensions: as in layer.py, and N R rows where both streams stand below each
other.
"""

from typing import TYPE_CHECKING, Callable, List, Optional, Sequence, Tuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...common.layers import Linear
from ...common.sentence_steps import (
    Affine,
    AttentiveSteps,
    Past,
    SentenceSteps,
    SourceAttention,
    attend_past,
    first_positions,
    is_plain,
    repeated_norm,
)
from ...common.transformer import Positions
from .layer import DuoAttention, DuoLayer, DuoNorm, Streams

if TYPE_CHECKING:  # modules.py imports this file
    from .modules import DuoDecoder

# of the parts of a decoder, besides its own and that of its embedding
TYPES = (
    *(DuoLayer, DuoAttention, DuoNorm, Linear, Positions),
    *(nn.Embedding, nn.Identity, nn.LayerNorm, nn.ModuleList),
)
Addition = Callable[[Streams, Sequence[Tensor]], Streams]


def duo_steps(
    decoder: "DuoDecoder", source: Tensor, rows: int, steps: int, *types: type
) -> Optional[SentenceSteps]:
    """Return the steps, None where a module may compute something else.

    Args:
        decoder: whose steps they are.
        source: both streams of the encoder (S, N * D).
        rows, steps: R, T.
        types: those of the decoder and its embedding.
    """
    return DuoSteps(decoder, source, rows, steps) if is_plain(decoder, (*types, *TYPES)) else None


class DuoSteps(AttentiveSteps):
    """The steps of a decoder, with its attention.

    Args:
        decoder, source, rows, steps: as of ``duo_steps``.
    """

    def __init__(self, decoder: "DuoDecoder", source: Tensor, rows: int, steps: int):
        super().__init__(rows, steps, source)
        self.decoder, self.streams = decoder, decoder.size.streams
        embedding = decoder.embedding
        self.positions = first_positions(
            embedding.positions, embedding.padding_index, steps, source
        )  # (T, D)
        sources = source.chunk(self.streams, dim=1)  # (S, D) each
        self.layers = [_LayerSteps(layer, sources, rows, steps) for layer in decoder.layers]

    def decode(self, words: Tensor, visible: Tensor) -> Tuple[Tensor, Optional[Tensor]]:
        """Return the logits (R, V), and the last layer's attention (R, S)."""
        embedding, position = self.decoder.embedding, self.positions[self.step - 1]
        states = [
            torch.add(position, adapt(F.embedding(words, table.weight)), alpha=embedding.scale)
            for table, adapt in zip(embedding.tables, embedding.adapters)
        ]  # (R, D) each
        for layer in self.layers:
            states, weights = layer(states, visible)
        return self.decoder.logits(self.decoder.merge_streams(states)), weights.mean(dim=(0, 2))


class _LayerSteps:
    """The steps of one layer."""

    def __init__(self, layer: DuoLayer, sources: Sequence[Tensor], rows: int, steps: int):
        attention, streams = layer.self_attention, len(sources)
        # [query ; key ; value] of a stream, or [query ; key and value in one]
        pairs = zip(*map(_linears, (attention.query, attention.key_value)))
        self.read = [Affine.of(*pair).repeated(rows) for pair in pairs]
        shared, heads = attention.parts == 1, attention.heads
        self.past = [Past(rows, steps, heads, sources[0], shared) for _ in sources]
        self.output = [Affine.of(output).repeated(rows) for output in _linears(attention.output)]
        self.add = _addition(layer.self_attention_norm)
        self.context = _context(layer.context_attention, sources)
        self.add_context = _addition(layer.context_attention_norm)
        # for the rows of both streams
        self.enter = Affine.of(layer.feed_forward_in).repeated(streams * rows)
        self.leave = Affine.of(layer.feed_forward_out).repeated(streams * rows)
        self.feed_forward_norm = repeated_norm(layer.feed_forward_norm)

    def __call__(self, states: Streams, visible: Tensor) -> Tuple[Streams, Tensor]:
        """Return the states after the layer, (R, D) each, and the attention (N, R, H, S)."""
        states = self.add(states, self._attend(states, visible))
        # each stream's query is of the other one
        changes, weights = zip(*(read(other) for read, other in zip(self.context, states[::-1])))
        states = self.add_context(states, changes)
        joined = torch.cat(states)  # (N R, D)
        change = self.leave(self.enter(joined).relu_())
        joined = self.feed_forward_norm(joined + change)
        return list(joined.chunk(len(states))), torch.stack(weights)

    def _attend(self, states: Streams, visible: Tensor) -> Streams:
        """Return A_S and A_P of self-attention, (R, D) each."""
        width, queries = states[0].size(1), []
        for state, read, past in zip(states, self.read, self.past):
            projected = read(state)
            query, newest = projected.split([width, projected.size(1) - width], dim=1)
            past.write(newest, visible.size(1))
            queries.append(query)
        others = zip(queries[::-1], self.past[::-1])
        return [
            output(attend_past(query, other.keys, past.values, visible))
            for output, past, (query, other) in zip(self.output, self.past, others)
        ]


def _linears(layers: nn.Module) -> Sequence[Linear]:
    return cast(Sequence[Linear], layers)


def _addition(norm: DuoNorm) -> Addition:
    """Return the function of states and changes that closes a sub-layer: Eq. 6, or uncrossed."""
    norms = [repeated_norm(part) for part in cast(Sequence[nn.LayerNorm], norm.norms)]

    def add(states: Streams, changes: Sequence[Tensor]) -> Streams:
        changes = changes[::-1] if norm.crossed else changes
        return [part(state + change) for part, state, change in zip(norms, states, changes)]

    return add


def _context(attention: DuoAttention, sources: Sequence[Tensor]) -> List[SourceAttention]:
    """Return the attention over the source of each stream."""
    layers = zip(_linears(attention.key_value), sources)
    projected = [layer(source) for layer, source in layers]
    keys = [part.chunk(attention.parts, dim=1)[0] for part in projected]  # (S, D) each
    values = [part.chunk(attention.parts, dim=1)[-1] for part in projected]
    # queries and keys are of the other stream
    queries, outputs = _linears(attention.query), _linears(attention.output)
    parts = zip(queries[::-1], keys[::-1], values, outputs)
    return [
        SourceAttention(Affine.of(query), key, value, Affine.of(output), attention.heads)
        for query, key, value, output in parts
    ]
