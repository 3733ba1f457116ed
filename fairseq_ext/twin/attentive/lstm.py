"""An LSTM that looks at a source at every step, for whole target sequences at once.

States h_0 .. h_T, and attentions a_j that read h_j and feed h_{j+1}::

    g_j = inputs_j + W_c z_{j-1} + U h_{j-1}                       gates i, f, c, o;  j = 1 .. T
    m_j = sigmoid(g^f_j) * m_{j-1} + sigmoid(g^i_j) * tanh(g^c_j)  memory cell
    h_j = sigmoid(g^o_j) * tanh(m_j)
    e_js = energy . tanh(keys_s + W_q h_j + L f_js);  a_j = softmax(e_j)
    z_j = sum_s a_js values_s                                      context
    f_js = sum_n filters_n a_{j-1, s + n - w}                      location features, w = width // 2

There are T attentions, j = first .. first + T - 1. With ``first`` = 0 the first one feeds h_1 and
nothing reads h_T (Xu et al. 2015); with ``first`` = 1 h_1 has no attention before it and the last
one is read by the output layer alone (Chorowski et al. 2015). Location features are optional.

What does not depend on h stands outside: the projections of the inputs, the keys. Gradients of
weights are products over the whole sequence after the backward loop. No array of size (B, S, A) is
kept for every step: it is computed again in the backward pass.

Dimensions: B sentences, S source positions, T steps, A attention, C values, H units, N filters;
time comes first.
"""

from typing import Any, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ...common.attention_gradient import AdditiveAttention, by_position
from ...common.lstm import lstm_cell_backward, lstm_cell_forward
from ...common.products import repeated_linear


class Location(NamedTuple):
    """The parts of location features, by which an attention sees the one before it.

    initial: a_{first-1} (B, S). filters: (N, 1, width), width odd. weight: L (A, N).
    """

    initial: Tensor
    filters: Tensor
    weight: Tensor


def location_features(weights: Tensor, filters: Tensor) -> Tensor:
    """Return f (R, S, N) of a (R, S)."""
    padding = filters.size(2) // 2
    return F.conv1d(weights.unsqueeze(1), filters, padding=padding).transpose(1, 2)


class Weights(NamedTuple):
    """The recurrence's. context: W_c (4H, C). state: [U ; W_q] (4H + A, H). energy: (A,)."""

    context: Tensor
    state: Tensor
    energy: Tensor


def attentive_lstm(
    inputs: Tensor,
    start: Tuple[Tensor, Tensor],
    keys: Tensor,
    values: Tensor,
    masked: Tensor,
    weights: Weights,
    first: int = 0,
    location: Optional[Location] = None,
) -> Tuple[Tensor, Tensor, Tensor]:
    """Return states, contexts and attention of all steps.

    Args:
        inputs: (T, B, 4H).
        start: h_0 and m_0 (B, H).
        keys: (B, S, A).
        values: (B, S, C).
        masked: (T, B, S) bool, True where attention number t may not look; somewhere it may.
        weights: of the recurrence.
        first: 0 or 1.
        location: None for attention by content alone.

    Returns:
        h_1 .. h_T (T, B, H), z_first .. (T, B, C), a_first .. (T, B, S), the last without gradient.
    """
    dtype = weights.state.dtype  # --amp: the loop runs in the precision of the weights
    tensors = [inputs, *start, keys, values, *weights, *(location or ())]
    return _AttentiveLSTM.apply(masked, first, *(tensor.to(dtype) for tensor in tensors))


class _LocationAttention(AdditiveAttention):
    """An attention with location features, whose step ``look`` precedes."""

    def __init__(self, keys: Tensor, energy: Tensor, weight: Tensor):
        super().__init__(keys, energy)
        self.by_content, self.doubled = self.doubled.flatten(0, 1), torch.empty_like(keys)
        self.weight, self.twice = weight, 2 * weight.t()  # L (A, N), (N, A)

    def look(self, features: Tensor) -> None:
        """Take the features of the step that follows, (B, S, N)."""
        into = self.doubled.flatten(0, 1)
        torch.addmm(self.by_content, features.flatten(0, 1), self.twice, out=into)

    def start_backward(self) -> None:
        """Set the sums of gradients to zero."""
        super().start_backward()
        self.grad_weight = torch.zeros_like(self.twice)
        self.scaled = 4 * self.energy.unsqueeze(1) * self.weight  # (A, N)

    def features_backward(self, features: Tensor) -> Tensor:
        """Return the gradient of a step's features (N, B S), right after its ``backward``."""
        # what ``backward`` has left in ``squashed`` are the slopes z (1 - z)
        through = self.squashed.mul_(self.grad_scores.unsqueeze(2)).flatten(0, 1)  # (B S, A)
        self.grad_weight += features.flatten(0, 1).t() @ through
        return self.scaled.t() @ through.t()


class _AttentionPass:
    """All attentions of a pass, forwards and backwards.

    weights: a (T, B, S). location: the fields of ``Location``, or empty.
    """

    def __init__(self, weights: Tensor, keys: Tensor, energy: Tensor, location: Sequence[Tensor]):
        self.weights, self.location = weights, location
        self.attention: Any
        if location:
            self.initial, self.filters, weight = location
            self.attention = _LocationAttention(keys, energy, weight)
        else:
            self.attention = AdditiveAttention(keys, energy)

    def _look(self, number: int) -> Optional[Tensor]:
        """Return the location features (B, S, N) of an attention, which then holds them."""
        if not self.location:
            return None
        before = self.weights[number - 1] if number else self.initial
        features = location_features(before, self.filters)  # (B, S, N)
        self.attention.look(features)
        return features

    def forward(self, number: int, query: Tensor, masked: Tensor) -> None:
        """Fill in the weights with this number from 0; query (B, A), masked (B, S)."""
        self._look(number)
        self.attention.weigh(query, masked, self.weights[number])

    def start_backward(self) -> None:
        """Set the sums of gradients to zero."""
        self.attention.start_backward()
        # of the weights, through the location features that follow
        self.grad_before: Optional[Tensor] = None
        if self.location:
            self.grad_filters = torch.zeros_like(self.filters)

    def backward(self, number: int, query: Tensor, grad: Tensor) -> Tensor:
        """Return the gradient of the query (B, A).

        grad: of the weights (B, S), but for what their location features pass on.
        """
        if self.grad_before is not None:
            grad = grad + self.grad_before
        # computed again, as z is: nothing of size (B, S, ..) was stored for a step
        features = self._look(number)
        grad_query = self.attention.backward(query, self.weights[number], grad)
        if features is not None:
            self._filters_backward(number, self.attention.features_backward(features))
        return grad_query

    def _filters_backward(self, number: int, grad: Tensor) -> None:
        """Add a step's gradients of filters and weights before; grad: of the features (N, B S)."""
        before = self.weights[number - 1] if number else self.initial  # (B, S)
        width = self.filters.size(2)
        windows = F.pad(before, (width // 2, width // 2)).unfold(1, width, 1)  # (B, S, width)
        self.grad_filters[:, 0] += grad @ windows.flatten(0, 1)
        grad = grad.unflatten(1, before.shape).transpose(0, 1)  # (B, N, S)
        self.grad_before = F.conv_transpose1d(grad, self.filters, padding=width // 2).squeeze(1)

    def gradients(self) -> Tuple[Optional[Tensor], ...]:
        """Return those of keys (B, S, A) and energy (A,), and of the fields of ``Location``."""
        grad_keys, grad_energy = self.attention.gradients()
        if not self.location:
            return grad_keys, grad_energy
        grad_weight = (4 * self.attention.energy) * self.attention.grad_weight  # (N, A)
        return (grad_keys, grad_energy, self.grad_before, self.grad_filters, grad_weight.t())


class _AttentiveLSTM(torch.autograd.Function):
    """``attentive_lstm`` with its gradient: a loop back, then products over all steps."""

    @staticmethod
    def forward(
        ctx: Any,
        masked: Tensor,
        first: int,
        inputs: Tensor,
        state: Tensor,
        memory: Tensor,
        keys: Tensor,
        values: Tensor,
        context_weight: Tensor,
        state_weight: Tensor,
        energy: Tensor,
        *location: Tensor,
    ) -> Tuple[Tensor, Tensor, Tensor]:
        steps, sentences, width = inputs.shape  # width: 4H
        states = state.new_empty(steps + 1, *state.shape)
        memories = torch.empty_like(states)
        states[0], memories[0] = state, memory
        gates = torch.empty_like(inputs)  # after their sigmoid or tanh
        contexts = inputs.new_empty(steps, sentences, values.size(2))
        weights = inputs.new_empty(steps, *keys.shape[:2])
        with torch.autocast(inputs.device.type, enabled=False):
            attention = _AttentionPass(weights, keys, energy, location)
            from_state = repeated_linear(state_weight, sentences)
            from_context = repeated_linear(context_weight, sentences)

            def attend(number: int, query: Tensor) -> None:
                """Fill in the weights and the context of an attention."""
                attention.forward(number, query, masked[number])
                context = torch.bmm(weights[number].unsqueeze(1), values)
                contexts[number] = context.squeeze(1)  # (B, C)

            # both products with a state in one: U h for the next gates, W_q h for the query
            projected = from_state(state)  # (B, 4H + A)
            if first == 0:
                attend(0, projected[:, width:])
            for j in range(1, steps + 1):
                sums = inputs[j - 1] + projected[:, :width]
                if j > first:
                    # z_{j-1}; with ``first`` = 1 h_1 has none
                    sums += from_context(contexts[j - 1 - first])
                lstm_cell_forward(sums, memories[j - 1], gates[j - 1], memories[j], states[j])
                projected, number = from_state(states[j]), j - first
                if number < steps:
                    attend(number, projected[:, width:])
        ctx.first = first
        saved = (states, memories, gates, contexts, weights, keys, values)
        ctx.save_for_backward(*saved, context_weight, state_weight, energy, *location)
        ctx.mark_non_differentiable(weights)
        # copies: the caller may write into what it gets, the backward pass reads the originals
        return states[1:].clone(), contexts.clone(), weights

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(  # type: ignore[override]  # torch declares (ctx, *grads)
        ctx: Any, grad_states: Tensor, grad_contexts: Tensor, _: Any
    ) -> Tuple[Optional[Tensor], ...]:
        states, memories, gates, contexts, weights, keys, values, *more = ctx.saved_tensors
        context_weight, state_weight, energy, *location = more
        first, (steps, sentences, width) = ctx.first, gates.shape
        # of [U ; W_q] h_j, which for U is that of the gates of step j + 1
        # zeros stay where nothing reads: U h_T, and W_q h of a state without an attention
        grad_projected = states.new_zeros(steps + 1, sentences, state_weight.size(0))
        # a copy: the loop adds what comes from the gates
        grad_contexts, grad_memory = grad_contexts.clone(), torch.zeros_like(memories[0])
        with torch.autocast(gates.device.type, enabled=False):
            attention = _AttentionPass(weights, keys, energy, location)
            attention.start_backward()
            query_of = repeated_linear(state_weight[width:], sentences)
            to_state = repeated_linear(state_weight.t(), sentences)
            to_context = repeated_linear(context_weight.t(), sentences)
            for j in reversed(range(steps + 1)):
                number, grad_gates = j - first, grad_projected[j, :, :width]
                if 0 <= number < steps:
                    if j < steps:
                        grad_contexts[number] += to_context(grad_gates)
                    grad = by_position(grad_contexts[number], values)  # (B, S)
                    # W_q h_j again: the forward pass has not kept the queries
                    query = query_of(states[j])
                    grad_projected[j, :, width:] = attention.backward(number, query, grad)
                grad_state = to_state(grad_projected[j])
                if j:
                    grad_state += grad_states[j - 1]
                    into = grad_projected[j - 1, :, :width]
                    cell = gates[j - 1], memories[j - 1], memories[j]
                    grad_memory = lstm_cell_backward(grad_state, grad_memory, *cell, into)
            # the gates of step j + 1 and what they read of the source, z_j
            grad_gates = grad_projected[first:steps, :, :width].flatten(0, 1)
            grad_keys, grad_energy, *grad_location = attention.gradients()
            grad_weights = (
                torch.bmm(weights.permute(1, 2, 0), grad_contexts.transpose(0, 1)),
                grad_gates.t() @ contexts[: steps - first].flatten(0, 1),
                grad_projected.flatten(0, 1).t() @ states.flatten(0, 1),
            )
        # the gates' gradient of step j + 1 is that of its inputs: they are added without a weight
        grad_inputs = grad_projected[:steps, :, :width]
        grad_start = grad_inputs, grad_state, grad_memory
        return (None, None, *grad_start, grad_keys, *grad_weights, grad_energy, *grad_location)
