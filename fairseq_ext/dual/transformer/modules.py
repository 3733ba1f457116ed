"""Model-level dual learning, the paper's equations (Xia et al., ICML 2018), in plain torch.

A component phi_Z belongs to one language Z and has two roles (Sec. 2.1, 3.1). In each block::

    z~ = phi^c_{Z,1}(z);    h^Z = phi^c_{Z,2}(z~ + phi^z_Z(z~, C_Z))              (Eq. 4, 5)

    encoding role:  C_Z = {0}, the null context, and phi^z_Z(z~, 0) = 0; all of z is visible
    decoding role:  C_Z = h of the other component's last block; position t sees z_{<=t}

where phi^c_{Z,1} is self-attention, phi^z_Z attention over the context and phi^c_{Z,2} the
feed-forward layer, each with its residual connection and layer normalisation. The softmax phi^h_Z
closes the decoding role. The primal model X -> Y encodes with phi_X and decodes with phi_Y; the
dual model Y -> X does the reverse with the same parameters.

Deviation: the paper says phi^z(z~, 0) = 0; read literally, the layer norm of that sub-layer would
still apply (LN(z~ + 0)). Here the null context skips the sub-layer with its norm, so that the
primal model is exactly a stock Transformer, as Sec. 3.3 states of it.

Dimensions: B sentences, R rows (R = B, or B * beam when decoding), T positions of this language,
S positions of the context, D model, F feed-forward, H heads, V vocabulary.
Masks are bool, True = padding.
"""

import math
from dataclasses import dataclass
from typing import Iterable, Optional, Tuple, cast

from torch import Tensor, nn
from torch.nn import functional as F

from ...common import products
from ...common.decoding import PER_SENTENCE, Cache, append_to_cache
from ...common.dropout import RetainsDropout
from ...common.layers import Linear, linear
from ...common.layers import embedding as make_embedding
from ...common.sentence_steps import SentenceSteps
from ...common.transformer import Positions, TransformerSize, attend, projection
from ...common.transformer_steps import TransformerSteps
from .sentence_steps import decoder_maps


@dataclass(frozen=True)
class ComponentSize(TransformerSize):
    """Sizes and dropout rates of a component; ValueError as of ``TransformerSize``.

    normalize_before: a layer norm before each sub-layer in place of after it.
    """

    normalize_before: bool = False


class SelfAttention(RetainsDropout, nn.Module):
    """phi^c_1 without residual and norm: multi-head attention of a sequence over itself."""

    def __init__(self, embed_dim: int, heads: int, dropout: float):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv = projection(embed_dim, embed_dim, embed_dim, embed_dim)
        self.output = linear(embed_dim, embed_dim)

    def forward(
        self,
        states: Tensor,
        visible: Optional[Tensor] = None,
        causal: bool = False,
        cache: Optional[Cache] = None,
        name: str = "",
    ) -> Tensor:
        """Return what each position has read from the others: (R, T, D) -> (R, T, D).

        ``visible`` (R, 1, 1, T) is False at positions nobody may look at. With a ``cache`` the
        states are those of the newest position (T = 1) and see everything in the cache.
        """
        rows, length, _ = states.shape
        # one product for all three projections
        qkv = self.qkv(states).view(rows, length, 3, self.heads, -1)  # (R, T, 3, H, D/H)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (R, H, T, D/H)
        if cache is not None:
            # the cache holds positions up to the newest, so that no causal mask is needed
            (key, value), visible = append_to_cache(cache, name, [key, value])
        dropout = self.dropout if self.is_dropping else 0.0
        mixed, _ = attend(query, key, value, visible, dropout, causal and cache is None)
        return self.output(mixed.transpose(1, 2).flatten(2))  # heads side by side (R, T, D)


class ContextAttention(RetainsDropout, nn.Module):
    """phi^z without residual and norm: multi-head attention over C, the other component's states.

    The rows of one sentence (its beam) attend to one copy of the sentence's context.
    """

    def __init__(self, embed_dim: int, heads: int, dropout: float):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query = projection(embed_dim, embed_dim)
        self.key_value = projection(embed_dim, embed_dim, embed_dim)
        self.output = linear(embed_dim, embed_dim)

    def keys_values(self, context: Tensor) -> Tuple[Tensor, Tensor]:
        """Return keys and values of the context: (B, S, D) -> (B, H, S, D/H) each."""
        sentences, length, _ = context.shape
        # (B, S, 2, H, D/H)
        key_value = self.key_value(context).view(sentences, length, 2, self.heads, -1)
        # a decoder reads them at every step: contiguous ones are not copied again each time
        key, value = key_value.permute(2, 0, 3, 1, 4).contiguous().unbind(0)
        return key, value

    def forward(
        self,
        states: Tensor,
        key: Tensor,
        value: Tensor,
        visible: Optional[Tensor] = None,
        need_weights: bool = False,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Return what the states (R, T, D) have read from the context.

        Keys and values (B, H, S, D/H), visible (B, 1, 1, S).

        Returns:
            (R, T, D), and with ``need_weights`` the attention averaged over heads (R, T, S).
        """
        rows, length, _ = states.shape
        sentences = key.size(0)
        # the beam of a sentence becomes further positions of one query: its context is not copied
        query = self.query(states).view(sentences, -1, self.heads, key.size(-1))
        query = query.transpose(1, 2)  # (B, H, R/B*T, D/H)
        dropout = self.dropout if self.is_dropping else 0.0
        mixed, weights = attend(query, key, value, visible, dropout, need_weights=need_weights)
        if weights is not None:
            weights = weights.mean(dim=1).reshape(rows, length, -1)  # (R, T, S)
        mixed = mixed.transpose(1, 2).reshape(rows, length, -1)  # (R, T, D)
        return self.output(mixed), weights


class Block(RetainsDropout, nn.Module):
    """One block of a component: z~ = phi^c_1(z); h = phi^c_2(z~ + phi^z(z~, C))  (Eq. 4, 5)."""

    def __init__(self, size: ComponentSize):
        super().__init__()
        self.size = size
        attention = size.embed_dim, size.heads, size.attention_dropout
        self.self_attention = SelfAttention(*attention)
        self.self_attention_norm = nn.LayerNorm(size.embed_dim)
        self.context_attention = ContextAttention(*attention)
        self.context_attention_norm = nn.LayerNorm(size.embed_dim)
        self.feed_forward_in = Linear(size.embed_dim, size.ffn_dim)
        self.feed_forward_out = Linear(size.ffn_dim, size.embed_dim)
        self.feed_forward_norm = nn.LayerNorm(size.embed_dim)

    def _enter(self, norm: nn.LayerNorm, states: Tensor) -> Tensor:
        """Return what a sub-layer reads (R, T, D)."""
        # a sub-layer is normalised at its entrance or at its exit, never at both
        return norm(states) if self.size.normalize_before else states

    def _leave(self, norm: nn.LayerNorm, states: Tensor, change: Tensor) -> Tensor:
        """Return the states (R, T, D) after a sub-layer's output is added, by the residual."""
        states = states + self.drop(change, self.size.dropout)
        return states if self.size.normalize_before else norm(states)

    def _feed_forward(self, states: Tensor) -> Tensor:
        """Return phi^c_2 without residual and norm: (R, T, D) -> (R, T, D)."""
        hidden = F.relu(self.feed_forward_in(states))  # (R, T, F)
        hidden = self.drop(hidden, self.size.activation_dropout)
        return self.feed_forward_out(hidden)

    def forward(
        self,
        states: Tensor,
        *,
        visible: Optional[Tensor] = None,
        causal: bool = False,
        context: Optional[Tuple[Tensor, Tensor]] = None,
        context_visible: Optional[Tensor] = None,
        cache: Optional[Cache] = None,
        name: str = "",
        need_weights: bool = False,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Return h (R, T, D) of states (R, T, D), and the attention (R, T, S) or None.

        ``context`` holds this block's keys and values of C, each (B, H, S, D/H); None is the null
        context of the encoding role. ``visible`` and ``context_visible`` are (R, 1, 1, T) and
        (B, 1, 1, S) masks, True = may be looked at.
        """
        # z~ = phi^c_1(z)
        norm = self.self_attention_norm
        change = self.self_attention(self._enter(norm, states), visible, causal, cache, name)
        z_tilde = self._leave(norm, states, change)  # (R, T, D)
        # z~ + phi^z(z~, C); Deviation: the null context skips phi^z with its norm
        with_context, weights = z_tilde, None
        if context is not None:
            norm = self.context_attention_norm
            change, weights = self.context_attention(
                self._enter(norm, z_tilde), *context, context_visible, need_weights
            )
            with_context = self._leave(norm, z_tilde, change)  # (R, T, D)
        # h = phi^c_2(z~ + phi^z(z~, C))
        norm = self.feed_forward_norm
        change = self._feed_forward(self._enter(norm, with_context))
        return self._leave(norm, with_context, change), weights


class Component(RetainsDropout, nn.Module):
    """phi_Z: embedding, blocks and softmax of one language, in both roles (Fig. 2a, Fig. 4).

    Args:
        size: sizes and dropout rates.
        vocab_size: V.
        padding_index: index of the padding symbol.
        embedding: (V, D) to share with other components.
        separate_softmax: phi^h has a matrix (V, D) of its own instead of the embedding's.
    """

    def __init__(
        self,
        size: ComponentSize,
        vocab_size: int,
        padding_index: int,
        embedding: Optional[nn.Embedding] = None,
        separate_softmax: bool = False,
    ):
        super().__init__()
        self.size, self.padding_index = size, padding_index
        if embedding is None:
            embedding = make_embedding(vocab_size, size.embed_dim, padding_index)
        self.embedding = embedding
        self.softmax: Optional[Linear] = None
        if separate_softmax:
            self.softmax = Linear(size.embed_dim, vocab_size, bias=False)
            nn.init.normal_(self.softmax.weight, std=size.embed_dim**-0.5)
        self.positions = Positions(size.embed_dim, padding_index)
        self.scale = math.sqrt(size.embed_dim)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        # with norms in front of the sub-layers, nothing has normalised what the last block returns
        self.final_norm = nn.LayerNorm(size.embed_dim) if size.normalize_before else nn.Identity()

    def _embed(self, tokens: Tensor, only_last: bool = False) -> Tensor:
        """Return the input of the first block: (R, T) -> (R, T, D), or (R, 1, D) of the last."""
        positions = self.positions(tokens, only_last)
        tokens = tokens[:, -1:] if only_last else tokens
        # drawn with variance 1/D, embeddings are brought to the size of the positions
        states = self.scale * self.embedding(tokens) + positions
        return self.drop(states, self.size.dropout)  # (R, T, D)

    def encode(self, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        """Return states and padding of the encoding role, Eq. 4: (B, T) -> (B, T, D), (B, T)."""
        padding = tokens.eq(self.padding_index)  # (B, T)
        visible = ~padding[:, None, None, :]  # (B, 1, 1, T)
        # the null context: no ``context`` is given to the blocks
        states = self._embed(tokens)
        for block in self.blocks:
            states, _ = block(states, visible=visible)
        return self.final_norm(states), padding

    def decode(
        self,
        prev_tokens: Tensor,
        context: Tensor,
        context_padding: Tensor,
        cache: Optional[Cache] = None,
        need_weights: bool = False,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Return the states of the decoding role, Eq. 5, that predict each next token.

        Args:
            prev_tokens: (R, T), padded on the right or not at all.
            context: C_Z = the other component's states (B, S, D), where R is a multiple of B and
                the rows of one sentence stand together.
            context_padding: (B, S).
            cache: state of incremental decoding, filled here; only the newest token is then
                computed, and the context is read at the first step alone.
            need_weights: also return the last block's attention over the context.

        Returns:
            states (R, T, D), or (R, 1, D) with a cache; attention (R, T, S) or None.
        """
        # teacher forcing has no steps: it uses the same names for the length of this call
        context_cache: Cache = {} if cache is None else cache
        blocks = cast(Iterable[Block], self.blocks)
        # keys and values of C do not depend on the step: one product per block and sentence
        if PER_SENTENCE + "visible" not in context_cache:
            context_cache[PER_SENTENCE + "visible"] = ~context_padding[:, None, None, :]
            for index, block in enumerate(blocks):
                key, value = block.context_attention.keys_values(context)
                context_cache[f"{PER_SENTENCE}{index}.key"] = key
                context_cache[f"{PER_SENTENCE}{index}.value"] = value
        context_visible = context_cache[PER_SENTENCE + "visible"]  # (B, 1, 1, S)
        states = self._embed(prev_tokens, only_last=cache is not None)
        weights = None
        for index, block in enumerate(blocks):
            keys_values = (
                cast(Tensor, context_cache[f"{PER_SENTENCE}{index}.{kind}"])
                for kind in ("key", "value")
            )
            states, weights = block(
                states,
                causal=True,
                context=tuple(keys_values),
                context_visible=context_visible,
                cache=cache,
                name=str(index),
                need_weights=need_weights and index + 1 == len(self.blocks),
            )
        return self.final_norm(states), weights

    def logits(self, states: Tensor) -> Tensor:
        """Return phi^h before its softmax: (R, T, D) -> (R, T, V)."""
        return products.linear(states, self.softmax_weight)

    @property
    def softmax_weight(self) -> Tensor:
        """Return the matrix of phi^h (V, D)."""
        # the transposed embedding unless it has a matrix of its own (weight tying)
        return (self.embedding if self.softmax is None else self.softmax).weight

    def sentence_steps(
        self, source: Tensor, rows: int, steps: int, need_attention: bool
    ) -> Optional[SentenceSteps]:
        """Return the decoding role's steps in a search for one sentence (S, D).

        None if a module may compute something else.
        """
        parts = Component, Block, SelfAttention, ContextAttention
        maps = decoder_maps(self, steps, *parts)
        return None if maps is None else TransformerSteps(maps, source, rows, need_attention)
