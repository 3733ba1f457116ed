"""The steps of a Transformer decoder in a search for one sentence.

Dimensions: as in sentence_steps.py; C source.
"""

from dataclasses import dataclass
from typing import List, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .sentence_steps import (
    Affine,
    AttentiveSteps,
    Norm,
    Past,
    SourceAttention,
    attend_past,
    repeated_norm,
)


@dataclass(frozen=True)
class LayerMaps:
    """The maps of a layer, and the norms of its sub-layers.

    query_key_value: (3D, D), of self-attention. output: (D, D). query, context_output: (D, D), of
    the attention over the source. key_value: (2D, C), which reads the source. enter, leave: of the
    feed-forward sub-layer, with a ReLU in between.
    """

    query_key_value: Affine
    output: Affine
    norm: nn.LayerNorm
    query: Affine
    key_value: Affine
    context_output: Affine
    context_norm: nn.LayerNorm
    enter: Affine
    leave: Affine
    feed_forward_norm: nn.LayerNorm


@dataclass(frozen=True)
class DecoderMaps:
    """All that a step computes with.

    embedding: (V, D), multiplied by ``scale``. positions: (T, D), added to it. norm_first: the norm
    of a sub-layer is at its entrance. final_norm: behind the last layer. softmax: (V, D).
    """

    embedding: Tensor
    scale: float
    positions: Tensor
    layers: List[LayerMaps]
    heads: int
    norm_first: bool
    final_norm: Optional[nn.Module]
    softmax: Affine


class TransformerSteps(AttentiveSteps):
    """The steps of a decoder.

    Args:
        maps: of the decoder.
        source: (S, C), without padding.
        rows: R.
        need_attention: return the last layer's attention over the source.
    """

    def __init__(self, maps: DecoderMaps, source: Tensor, rows: int, need_attention: bool):
        super().__init__(rows, len(maps.positions), maps.embedding)
        self.maps, self.need_attention = maps, need_attention
        self.layers = [_LayerSteps(layer, maps, source, rows) for layer in maps.layers]
        self.softmax = maps.softmax.repeated(rows)

    def decode(self, words: Tensor, visible: Tensor) -> Tuple[Tensor, Optional[Tensor]]:
        """Return the logits (R, V), and the attention (R, S) or None."""
        vectors = F.embedding(words, self.maps.embedding)
        position = self.maps.positions[self.step - 1]
        states = torch.add(position, vectors, alpha=self.maps.scale)  # (R, D)
        for layer in self.layers:
            states, weights = layer(states, visible)
        if self.maps.final_norm is not None:
            states = self.maps.final_norm(states)
        return self.softmax(states), weights.mean(dim=1) if self.need_attention else None


class _LayerSteps:
    """The steps of one layer."""

    def __init__(self, layer: LayerMaps, maps: DecoderMaps, source: Tensor, rows: int):
        self.query_key_value, self.output, self.enter, self.leave = (
            affine.repeated(rows)
            for affine in (layer.query_key_value, layer.output, layer.enter, layer.leave)
        )
        self.norm, self.context_norm, self.feed_forward_norm = map(
            repeated_norm, (layer.norm, layer.context_norm, layer.feed_forward_norm)
        )
        self.norm_first = maps.norm_first
        self.past = Past(rows, len(maps.positions), maps.heads, maps.positions)
        keys, values = F.linear(source, *layer.key_value).chunk(2, dim=1)  # (S, D) each
        self.context = SourceAttention(layer.query, keys, values, layer.context_output, maps.heads)

    def __call__(self, states: Tensor, visible: Tensor) -> Tuple[Tensor, Tensor]:
        """Return the states (R, D) after the layer, and its attention to the source (R, H, S)."""
        norm = self.norm
        states = self._leave(norm, states, self._attend(self._enter(norm, states), visible))
        norm = self.context_norm
        change, weights = self.context(self._enter(norm, states))
        states = self._leave(norm, states, change)
        norm = self.feed_forward_norm
        change = self.leave(self.enter(self._enter(norm, states)).relu_())
        return self._leave(norm, states, change), weights

    def _enter(self, norm: Norm, states: Tensor) -> Tensor:
        """Return what a sub-layer reads (R, D)."""
        return norm(states) if self.norm_first else states

    def _leave(self, norm: Norm, states: Tensor, change: Tensor) -> Tensor:
        """Return the states (R, D) after a sub-layer."""
        return states + change if self.norm_first else norm(states + change)

    def _attend(self, states: Tensor, visible: Tensor) -> Tensor:
        """Return self-attention (R, D); one product makes queries, keys and values."""
        width = states.size(1)
        query, newest = self.query_key_value(states).split([width, 2 * width], dim=1)
        self.past.write(newest, visible.size(1))
        return self.output(attend_past(query, self.past.keys, self.past.values, visible))
