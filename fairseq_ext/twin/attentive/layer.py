"""The recurrence of lstm.py as a layer, and decoders around it.

Dimensions: B sentences, R = B * K rows (K beams of a sentence stand together), S source positions,
T steps, E inputs, C annotations, H units, A attention, N location filters, O readout, V vocabulary.
Masks are bool, True = padding.
"""

from typing import NamedTuple, Optional, Tuple, cast

import torch
from torch import Tensor, nn

from ...common.attention import masked_softmax
from ...common.decoding import PER_SENTENCE, Cache, per_row
from ...common.dropout import RetainsDropout
from ...common.layers import linear
from ...common.lstm import lstm_cell
from .lstm import Location, Weights, attentive_lstm, location_features


class AttendedSource(NamedTuple):
    """What is read at every step. keys: (B, S, A). values: (B, S, C). padding: (B, S)."""

    keys: Tensor
    values: Tensor
    padding: Tensor


class StepState(NamedTuple):
    """What a step leaves to the next. state: h, memory: m (R, H). context: z (R, C).

    weights: a (R, S).
    """

    state: Tensor
    memory: Tensor
    context: Tensor
    weights: Tensor


class StepOutputs(NamedTuple):
    """What all steps give. states: h (R, T, H). contexts: z (R, T, C). weights: a (R, T, S)."""

    states: Tensor
    contexts: Tensor
    weights: Tensor


class AttentiveLSTM(nn.Module):
    """One LSTM layer with additive attention; see lstm.py for the equations.

    Args:
        embed_dim: E.
        context_size: C.
        hidden_size: H.
        attention_size: A.
        first: 0: every state has looked at the source already; 1: the attention follows the state,
            h_1 reads a zero context.
        location: (N, width of a filter, odd), or None for attention by content alone.
    """

    def __init__(
        self,
        embed_dim: int,
        context_size: int,
        hidden_size: int,
        attention_size: int,
        first: int,
        location: Optional[Tuple[int, int]] = None,
    ):
        super().__init__()
        self.first = first
        self.gates_input = linear(embed_dim, 4 * hidden_size)
        self.gates_context = linear(context_size, 4 * hidden_size, bias=False)  # W_c
        self.gates_state = nn.Linear(hidden_size, 4 * hidden_size, bias=False)  # U
        # each gate's U is orthogonal by itself
        for part in self.gates_state.weight.chunk(4):
            nn.init.orthogonal_(part)
        # the forget gate starts open
        nn.init.ones_(self.gates_input.bias[hidden_size : 2 * hidden_size])
        self.key = linear(context_size, attention_size)
        self.query = linear(hidden_size, attention_size, bias=False)  # W_q
        self.energy = nn.Parameter(torch.empty(attention_size))
        nn.init.normal_(self.energy, std=attention_size**-0.5)
        self.filters = self.location = None
        if location:
            count, width = location
            self.filters = nn.Parameter(torch.empty(count, 1, width))
            nn.init.normal_(self.filters, std=width**-0.5)
            self.location = linear(count, attention_size, bias=False)  # L

    def source(self, annotations: Tensor, padding: Tensor) -> AttendedSource:
        """Return what does not depend on the target, of annotations (B, S, C)."""
        return AttendedSource(self.key(annotations), annotations, padding)

    def start(self, state: Tensor, memory: Tensor, source: AttendedSource) -> StepState:
        """Return the state before the first step, from h_0 and m_0 (R, H)."""
        rows = state.size(0)
        weights = state.new_zeros(rows, source.padding.size(1))
        weights[:, 0] = 1.0  # a before the first step, for the location features
        # z_0, which h_1 reads with first = 1
        context = state.new_zeros(rows, source.values.size(2))
        return StepState(state, memory, context, weights)

    def attend(self, before: StepState, source: AttendedSource, masked: Tensor) -> StepState:
        """Return the state with weights a and context z of its h; masked: where not to look (B, S).

        The weights before give the location features.
        """
        sentences = source.padding.size(0)
        query = self.query(before.state).unflatten(0, (sentences, -1))  # (B, K, A)
        inside = source.keys.unsqueeze(1) + query.unsqueeze(2)  # (B, K, S, A)
        if self.filters is not None and self.location is not None:
            features = location_features(before.weights, self.filters)
            inside = inside + self.location(features).unflatten(0, (sentences, -1))
        # the sum inside of tanh is the largest array of a step: (B, K, S, A)
        scores = torch.tanh(inside) @ self.energy  # (B, K, S)
        weights = masked_softmax(scores, masked.unsqueeze(1)).type_as(scores)
        context = weights @ source.values  # z (B, K, C)
        return before._replace(context=context.flatten(0, 1), weights=weights.flatten(0, 1))

    def step(
        self,
        inputs: Tensor,
        before: StepState,
        source: AttendedSource,
        masked: Optional[Tensor] = None,
    ) -> StepState:
        """Return the state after one step, of inputs (R, E) and the state before.

        masked: where the attention may not look (B, S); default: at the padding.
        """
        masked = source.padding if masked is None else masked
        # h_j reads the context of a_{j-1}, which looks with h_{j-1}
        if self.first == 0:
            before = self.attend(before, source, masked)
        gates = self.gates_input(inputs) + self.gates_context(before.context)
        gates = gates + self.gates_state(before.state)  # (R, 4H)
        state, memory = lstm_cell(gates, before.memory)
        after = before._replace(state=state, memory=memory)
        # a_j looks with h_j: the readout sees it now, the LSTM in the next step
        return self.attend(after, source, masked) if self.first == 1 else after

    def literal(
        self, inputs: Tensor, start: StepState, source: AttendedSource, masked: Tensor
    ) -> StepOutputs:
        """Return the same as ``forward``, step by step: the specification."""
        after, steps = start, []
        for t in range(inputs.size(1)):
            after = self.step(inputs[:, t], after, source, masked[t])
            steps.append((after.state, after.context, after.weights))
        return StepOutputs(*(torch.stack(per_step, dim=1) for per_step in zip(*steps)))

    def forward(
        self, inputs: Tensor, start: StepState, source: AttendedSource, masked: Tensor
    ) -> StepOutputs:
        """Return all steps of whole sentences.

        Args:
            inputs: (B, T, E).
            start: what the method ``start`` returns.
            source: what the method ``source`` returns.
            masked: (T, B, S), True where the attention of a step may not look.
        """
        location = None
        if self.filters is not None and self.location is not None:
            location = Location(start.weights, self.filters, self.location.weight)
        # [U ; W_q]: the loop multiplies both with the state at once
        state_weight = torch.cat([self.gates_state.weight, self.query.weight])
        time_major = attentive_lstm(
            self.gates_input(inputs).transpose(0, 1),
            (start.state, start.memory),
            source.keys,
            source.values,
            masked,
            Weights(self.gates_context.weight, state_weight, self.energy),
            self.first,
            location,
        )
        # the loop has time first
        return StepOutputs(*(tensor.transpose(0, 1) for tensor in time_major))


def padding_at_every_step(padding: Tensor, steps: int) -> Tensor:
    """Return the mask (T, B, S) of steps that may look at all but the padding (B, S)."""
    return padding.unsqueeze(0).expand(steps, -1, -1)


class AttentiveDecoder(RetainsDropout, nn.Module):
    """A decoder around an ``AttentiveLSTM``; a subclass says where it starts and what it predicts.

    Args:
        embedding: of V symbols, width E.
        layer: the recurrence.
        output: readout (O) -> V.
        dropout: rate, on embeddings and on the readout.
    """

    def __init__(
        self, embedding: nn.Embedding, layer: AttentiveLSTM, output: nn.Linear, dropout: float
    ):
        super().__init__()
        self.embedding, self.layer, self.output, self.dropout = embedding, layer, output, dropout

    def initial(self, annotations: Tensor, padding: Tensor) -> Tuple[Tensor, Tensor]:
        """Return h_0 and m_0 (B, H) of annotations (B, S, C) and padding (B, S)."""
        raise NotImplementedError

    def readout(self, vectors: Tensor, states: Tensor, contexts: Tensor) -> Tensor:
        """Return what enters the softmax (R, T, O), of embeddings (R, T, E), h and z."""
        raise NotImplementedError

    def _start(
        self, annotations: Tensor, padding: Tensor, rows: int
    ) -> Tuple[StepState, AttendedSource]:
        """Return the state before the first step, and the source, for so many rows."""
        # encoded once for each sentence, whatever the beam; states are of each row
        source = self.layer.source(annotations, padding)
        state, memory = (per_row(start, rows) for start in self.initial(annotations, padding))
        return self.layer.start(state, memory, source), source

    def unroll(
        self,
        prev_tokens: Tensor,
        annotations: Tensor,
        padding: Tensor,
        masked: Optional[Tensor] = None,
        literal: bool = False,
    ) -> Tuple[Tensor, StepOutputs]:
        """Return all steps of whole sentences.

        Args:
            prev_tokens: (R, T), padded on the right or not at all; eos comes first.
            annotations: (B, S, C), padding: (B, S).
            masked: (T, B, S), where the attention may not look; default: at the padding.
            literal: step by step.

        Returns:
            readout (R, T, O), and what the layer gives.
        """
        rows, steps = prev_tokens.shape
        start, source = self._start(annotations, padding, rows)
        if masked is None:
            masked = padding_at_every_step(padding, steps)
        vectors = self.drop(self.embedding(prev_tokens))
        # the fused loop has one row for each sentence
        run = self.layer.literal if literal or rows != padding.size(0) else self.layer
        outputs = run(vectors, start, source, masked)
        return self.drop(self.readout(vectors, outputs.states, outputs.contexts)), outputs

    def decode(
        self,
        prev_tokens: Tensor,
        annotations: Tensor,
        padding: Tensor,
        cache: Optional[Cache] = None,
        need_weights: bool = False,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Return the readout that predicts the token after each of ``prev_tokens``; see ``unroll``.

        cache: of incremental decoding, filled here; only the newest token is then computed.

        Returns:
            readout (R, T, O), or (R, 1, O) with a cache; a (R, T or 1, S), or None unless
            ``need_weights``.
        """
        if cache is None:
            readout, steps = self.unroll(prev_tokens, annotations, padding)
            return readout, steps.weights if need_weights else None
        if not cache:
            before, source = self._start(annotations, padding, prev_tokens.size(0))
            cache.update({PER_SENTENCE + name: part for name, part in source._asdict().items()})
        else:
            before = StepState(*(cast(Tensor, cache[name]) for name in StepState._fields))
            source = AttendedSource(
                *(cast(Tensor, cache[PER_SENTENCE + name]) for name in AttendedSource._fields)
            )
        vectors = self.drop(self.embedding(prev_tokens[:, -1:]))  # (R, 1, E)
        after = self.layer.step(vectors[:, 0], before, source)
        cache.update(after._asdict())
        # (R, 1, ..): a single position for the readout
        state, context = after.state.unsqueeze(1), after.context.unsqueeze(1)
        readout = self.drop(self.readout(vectors, state, context))
        return readout, after.weights.unsqueeze(1) if need_weights else None

    def logits(self, readout: Tensor) -> Tensor:
        """Return the logits: (R, T, O) -> (R, T, V)."""
        return self.output(readout)
