"""The sequence-to-sequence model around the units: encoder, attention and decoder in plain torch.

Zaremoodi, Buntine and Haffari (ACL 2018), Sec. 2.3 and 3.3, leave this part to their base system,
an attentional model with one decoder input per word and a residual readout. The numbers are those
of the card::

    a_i = [forwards_i ; backwards_i]                                  Eq. 9, annotations
    h_0 = tanh(W mean_i a_i)                                          Eq. 10, first state
    e_ti = v . tanh(W_a a_i + b_a + W_q h_{t-1});  alpha_t = softmax(e_t)    Eq. 11
    c_t = sum_i alpha_ti a_i                                          Eq. 12, context
    h_t = unit([E y_{t-1} ; c_t], h_{t-1})                            Eq. 13, with Eq. 1 to 8
    p(y_t) = softmax(O tanh(h_t + Q c_t + P E y_{t-1}) + b_o)         Eq. 14, readout

With several layers a unit reads the state of the one below it, the query sees the states of all
layers, h_t = [h^1_t ; .. ; h^L_t], and the readout reads the top one.

E of the source belongs to the source's vocabulary; E of the target, O and b_o belong to the
target's; the units hold what belongs to a task; everything else belongs to all tasks.

Dimensions: B sentences, R = B * K rows of the beams, S source positions, T target positions,
D embedding, C annotation and context, A attention, O_l state of layer l (their sum is O), G
projections of the first layer's input, V vocabulary. Masks are bool, True = padding.
"""

from dataclasses import dataclass
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple, cast

import torch
from torch import Tensor, nn

from ..common import products
from ..common.attention import additive_attention
from ..common.decoding import PER_SENTENCE, Cache, per_row
from ..common.dropout import RetainsDropout
from ..common.layers import embedding, linear
from ..common.padding import align_left, mean_of_real
from ..common.sizes import check_sizes
from .attentive_stack import StackedLayer, attentive_stack
from .modules import RoutedUnit, State, UnitStack
from .routed_gru import routed_gru

# tau of each encoder unit, forwards and backwards, (B, S, n) each
EncoderRouting = List[Tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class RoutedSize:
    """Sizes and the dropout rate; ValueError with the option's name for one out of range.

    embed_dim: D. hidden_size: H, units of each block. attention_size: A. router_size: R of the
    unit; 0 = H. dropout: on embeddings, between layers and on the readout.
    """

    embed_dim: int = 400
    hidden_size: int = 400
    attention_size: int = 400
    router_size: int = 0
    dropout: float = 0.5

    def __post_init__(self) -> None:
        check_sizes(self, may_be_zero=["router_size"])


class EncodedSource(NamedTuple):
    """What the decoder needs of the source.

    keys: W_a a + b_a (B, S, A). annotations: a (B, S, C). projected: what the first unit's input
    projections make of a (B, S, G). padding: (B, S). initial: h_0 (B, O).
    """

    keys: Tensor
    annotations: Tensor
    projected: Tensor
    padding: Tensor
    initial: Tensor


class Decoded(NamedTuple):
    """What the decoder computes for all target positions.

    states: h of the top unit (B, T, O_L). contexts: c (B, T, C). attention: alpha (B, T, S).
    routing: tau of each unit (B, T, n).
    """

    states: Tensor
    contexts: Tensor
    attention: Tensor
    routing: List[Tensor]


class TargetVocabulary(nn.Module):
    """What belongs to a target vocabulary: E, O and b_o.

    Args:
        size: D.
        readout_size: width of the top unit's state.
        vocab_size: V.
        padding_index: index of the padding symbol.
    """

    def __init__(self, size: RoutedSize, readout_size: int, vocab_size: int, padding_index: int):
        super().__init__()
        self.embedding = embedding(vocab_size, size.embed_dim, padding_index)
        self.output = linear(readout_size, vocab_size)


class Encoder(RetainsDropout, nn.Module):
    """A vocabulary's embedding and the units that all vocabularies share.

    Args:
        units: bidirectional ones.
        dropout: on the embeddings.
    """

    def __init__(self, units: UnitStack, dropout: float):
        super().__init__()
        self.units, self.dropout = units, dropout
        self.output_size = units.output_size  # C

    def forward(
        self, table: nn.Embedding, tokens: Tensor, task: str, literal: bool = False
    ) -> Tuple[Tensor, Tensor, EncoderRouting]:
        """Return a (B, S, C), padding (B, S) and tau of the units, all with the padding at the end.

        table: the vocabulary's embedding. tokens: (B, S), padded at either end.
        """
        pad = cast(int, table.padding_idx)
        tokens = align_left(tokens, pad)
        padding = tokens.eq(pad)  # (B, S)
        vectors = self.drop(table(tokens))  # (B, S, D)
        annotations, tau = self.units(vectors, padding, task, literal)
        return annotations, padding, tau


class Decoder(RetainsDropout, nn.Module):
    """Attention, units and readout.

    Args:
        size: sizes and the dropout rate.
        units: from the bottom to the top; the first one reads D + C numbers.
        context_size: C.
    """

    def __init__(self, size: RoutedSize, units: Sequence[RoutedUnit], context_size: int):
        super().__init__()
        self.dropout, self.embed_dim = size.dropout, size.embed_dim
        self.units = cast(Sequence[RoutedUnit], nn.ModuleList(units))
        self.state_sizes = [unit.output_size for unit in units]
        states, width = sum(self.state_sizes), size.attention_size
        self.readout_size = self.state_sizes[-1]
        self.initial = linear(context_size, states, bias=False)  # W
        self.key = linear(context_size, width)  # W_a, b_a
        self.query = linear(states, width, bias=False)  # W_q
        self.energy = nn.Parameter(torch.empty(width))  # v
        nn.init.normal_(self.energy, std=width**-0.5)
        self.readout_context = linear(context_size, self.readout_size, bias=False)  # Q
        self.readout_embedding = linear(size.embed_dim, self.readout_size, bias=False)  # P

    def prepare(self, annotations: Tensor, padding: Tensor, task: str) -> EncodedSource:
        """Return all that depends on the source alone."""
        mean = mean_of_real(annotations, padding)  # (B, C)
        # the context enters the first unit through a linear map, and its weights sum to one: map
        # the annotations once instead of the context at every step
        weight, _ = self.units[0].projection(task)
        projected = products.linear(annotations, weight[:, self.embed_dim :])  # (B, S, G)
        initial = torch.tanh(self.initial(mean))  # Eq. 10
        return EncodedSource(self.key(annotations), annotations, projected, padding, initial)

    def embed(self, target: TargetVocabulary, prev_tokens: Tensor) -> Tensor:
        """Return E y (R, T, D) of tokens (R, T)."""
        return self.drop(target.embedding(prev_tokens))

    def _masks(self, vectors: Tensor) -> List[Optional[Tensor]]:
        """Return dropout of every unit's input (T, B, O_{l-1}), None where nothing is dropped.

        One mask for the whole sequence costs one call of the random generator instead of T.
        """
        if not (self.is_dropping and self.dropout):
            return [None] * len(self.units)
        steps, rows, _ = vectors.shape
        shapes = [(steps, rows, width) for width in self.state_sizes[:-1]]
        return [None, *(self.drop(vectors.new_ones(shape)) for shape in shapes)]

    def literal(self, vectors: Tensor, source: EncodedSource, task: str) -> Decoded:
        """Return what ``fused`` does, step by step as in the paper: the specification."""
        starts = source.initial.split(self.state_sizes, dim=1)
        states = [unit.start(start) for unit, start in zip(self.units, starts)]
        masks = self._masks(vectors.transpose(0, 1))
        steps = []
        for t in range(vectors.size(1)):
            query = self.query(torch.cat([output for _, output in states], dim=1))
            context, weights = additive_attention(
                query, source.keys, source.annotations, self.energy, source.padding
            )
            # Eq. 13 with several layers: each reads the state of the one below
            inputs, taus = torch.cat([vectors[:, t], context], dim=1), []
            for number, unit in enumerate(self.units):
                mask = masks[number]
                inputs = inputs if mask is None else inputs * mask[t]
                states[number], tau = unit.step(inputs, states[number], task)
                inputs = states[number][1]
                taus.append(tau)
            steps.append((inputs, context, weights, *taus))
        top, contexts, weights, *taus = (torch.stack(parts, dim=1) for parts in zip(*steps))
        return Decoded(top, contexts, weights, taus)

    def fused(self, vectors: Tensor, source: EncodedSource, task: str) -> Decoded:
        """Return what all steps compute (Eq. 11 to 13), of E y (B, T, D).

        Whatever does not depend on the step before is computed for all steps at once.
        """
        vectors = vectors.transpose(0, 1)  # (T, B, D)
        first_weight, first_bias = self.units[0].projection(task)
        masks = self._masks(vectors)
        layers: List[StackedLayer] = []
        starts = source.initial.split(self.state_sizes, dim=1)
        for unit, start, mask in zip(self.units, starts, masks):
            state, output = unit.start(start)
            # the attention projects the inputs of the first unit
            weight, bias = unit.projection(task) if layers else (None, None)
            layer = StackedLayer(state, output, weight, bias, mask, unit.recurrence(task))
            layers.append(layer)
        top, weights, taus = attentive_stack(
            products.linear(vectors, first_weight[:, : self.embed_dim], first_bias),
            source.keys,
            source.projected,
            source.padding,
            self.query.weight,
            self.energy,
            layers,
        )
        weights = weights.transpose(0, 1)  # (B, T, S)
        taus = [tau.transpose(0, 1) for tau in taus]
        top = top.transpose(0, 1).contiguous()
        # the contexts themselves are for the readout alone, after the loop
        return Decoded(top, weights @ source.annotations, weights, taus)

    def _word_projection(self, task: str) -> Tuple[Tensor, Tensor]:
        """Return what the first unit's projections do to E y: (G, D), (G,)."""
        weight, bias = self.units[0].projection(task)
        return weight[:, : self.embed_dim].contiguous(), bias

    def step(
        self, vectors: Tensor, source: EncodedSource, states: Sequence[State], task: str
    ) -> Tuple[Tensor, Tensor, List[State]]:
        """Return c_t (R, C), alpha_t (R, S) and the units' states after a step of decoding.

        vectors: E y_{t-1} (R, D). states: of the units before the step. Rows of a sentence stand
        together, so that the source is kept once per sentence.
        """
        query = self.query(torch.cat([output for _, output in states], dim=1))
        context, weights = additive_attention(
            query, source.keys, source.annotations, self.energy, source.padding
        )
        # the beams of a sentence share its projected annotations: (B, K, S) times (B, S, G)
        by_sentence = weights.view(source.keys.size(0), -1, weights.size(1))
        word = products.compute_once(lambda: self._word_projection(task), self, task)
        projected = products.linear(vectors, *word)
        projected = projected + (by_sentence @ source.projected).flatten(0, 1)  # (R, G)
        after: List[State] = []
        for unit, (state, output) in zip(self.units, states):
            if after:  # the unit reads the one below it
                below = self.drop(after[-1][1])
                projected = products.linear(below, *unit.projection(task))
            recurrence = unit.recurrence(task)
            outputs, _, blocks = routed_gru(projected.unsqueeze(0), state, output, recurrence)
            after.append((blocks, outputs[0]))
        return context, weights, after

    def readout(self, vectors: Tensor, states: Tensor, contexts: Tensor) -> Tensor:
        """Return tanh(h_t + Q c_t + P E y_{t-1}), what O reads (Eq. 14): (R, T, O_L)."""
        mixed = states + self.readout_context(contexts) + self.readout_embedding(vectors)
        return self.drop(torch.tanh(mixed))


def decode(
    decoder: Decoder,
    target: TargetVocabulary,
    encoded: Tuple[Tensor, Tensor],
    prev_tokens: Tensor,
    task: str,
    cache: Optional[Cache] = None,
    literal: bool = False,
) -> Tuple[Tensor, Tensor]:
    """Return the readout that predicts the token after each of ``prev_tokens``.

    Args:
        decoder: the decoder of all tasks.
        target: the target vocabulary's part.
        encoded: annotations (B, S, C) and padding (B, S).
        prev_tokens: (R, T), padded on the right or not at all; rows of a sentence stand together.
        task: whose blocks to use.
        cache: state of incremental decoding, filled here; only the newest token is then computed,
            and the source is read at the first step alone.
        literal: step by step instead of ``fused``.

    Returns:
        readout (R, T, O_L), or (R, 1, O_L) with a cache; attention (R, T, S).
    """
    if cache is not None:
        return _decode_step(decoder, target, encoded, prev_tokens, task, cache)
    source = decoder.prepare(*encoded, task)
    source = EncodedSource(*(per_row(part, prev_tokens.size(0)) for part in source))
    vectors = decoder.embed(target, prev_tokens)
    path = decoder.literal if literal else decoder.fused
    states, contexts, weights, _ = path(vectors, source, task)
    return decoder.readout(vectors, states, contexts), weights


def _decode_step(
    decoder: Decoder,
    target: TargetVocabulary,
    encoded: Tuple[Tensor, Tensor],
    prev_tokens: Tensor,
    task: str,
    cache: Cache,
) -> Tuple[Tensor, Tensor]:
    """Return the readout (R, 1, O_L) and attention (R, 1, S) of the newest token.

    The cache, filled here, has the states of the step before; the first step reads the source.
    """
    units = decoder.units
    if not cache:
        source = decoder.prepare(*encoded, task)
        rows = per_row(source.initial, prev_tokens.size(0)).split(decoder.state_sizes, dim=1)
        states = [unit.start(output) for unit, output in zip(units, rows)]
        cache.update({PER_SENTENCE + name: part for name, part in source._asdict().items()})
    else:
        tensors = cast(Dict[str, Tensor], cache)
        source = EncodedSource(*(tensors[PER_SENTENCE + name] for name in EncodedSource._fields))
        states = [
            (tensors[f"blocks_{number}"].transpose(0, 1), tensors[f"output_{number}"])
            for number in range(len(units))
        ]
    vectors = decoder.embed(target, prev_tokens[:, -1:])  # (R, 1, D)
    context, weights, states = decoder.step(vectors[:, 0], source, states, task)
    for number, (blocks, output) in enumerate(states):
        cache[f"blocks_{number}"] = blocks.transpose(0, 1)  # (R, K, H): rows come first
        cache[f"output_{number}"] = output
    readout = decoder.readout(vectors, states[-1][1].unsqueeze(1), context.unsqueeze(1))
    return readout, weights.unsqueeze(1)
