"""A GRU that looks at the source at every step, for whole target sequences at once.

What it computes, for t = 1 .. T::

    d_t = tanh(query_inputs_t + W_z h_{t-1})                       the query before L
    e_ti = energy . tanh(keys_i + L d_t);  a_t = softmax(e_t)      additive attention
    x_t = gate_inputs_t + sum_i a_ti gate_values_i                 W x + b of the GRU
    h_t = GRU(x_t, U h_{t-1}, h_{t-1})

Everything that does not depend on h stands outside: the inputs' projections, the keys, and, since
the weights a_t sum to one, also the gates' projections of the values, once per source position.
The gradients of all weights are products over the whole sequence after the backward loop; the loop
itself keeps two products with the state each way, which the recurrence does not let go of. The
array (B, S, A) inside the attention is computed again in the backward pass instead of being kept
for every step: memory T times smaller.

Dimensions: B sentences, S source positions, T steps, A attention, H units; time comes first.
"""

from typing import Any, Optional, Tuple

import torch
from torch import Tensor

from ..common.attention_gradient import AdditiveAttention, by_position
from ..common.autocast import without_autocast
from ..common.products import repeated_linear
from ..common.recurrent import sigmoid_backward, tanh_backward


def attentive_gru(
    state: Tensor,
    query_inputs: Tensor,
    gate_inputs: Tensor,
    keys: Tensor,
    gate_values: Tensor,
    padding: Tensor,
    state_weight: Tensor,
    query_weight: Tensor,
    energy: Tensor,
) -> Tuple[Tensor, Tensor]:
    """Return the states and attention weights of all steps.

    Args:
        state: h_0 (B, H).
        query_inputs: (T, B, A).
        gate_inputs: (T, B, 3H), gates in the order r, u, c.
        keys: (B, S, A).
        gate_values: (B, S, 3H).
        padding: (B, S) bool, True = padding.
        state_weight: [W_z; U] (A + 3H, H).
        query_weight: L (A, A).
        energy: (A,).

    Returns:
        h_1 .. h_T (T, B, H), a_1 .. a_T (T, B, S).
    """
    dtype = state_weight.dtype  # --amp: the loop runs in the precision of the weights
    inputs = (tensor.to(dtype) for tensor in (state, query_inputs, gate_inputs, keys, gate_values))
    weights = (state_weight, query_weight.to(dtype), energy.to(dtype))
    with torch.autocast(state.device.type, enabled=False):
        return _AttentiveGRU.apply(*inputs, padding, *weights)


class _AttentiveGRU(torch.autograd.Function):
    """``attentive_gru`` with its gradient: a loop back, then products over all steps."""

    @staticmethod
    def forward(
        ctx: Any,
        state: Tensor,
        query_inputs: Tensor,
        gate_inputs: Tensor,
        keys: Tensor,
        gate_values: Tensor,
        padding: Tensor,
        state_weight: Tensor,
        query_weight: Tensor,
        energy: Tensor,
    ) -> Tuple[Tensor, Tensor]:
        steps, sentences, width = query_inputs.shape
        units, positions = state.size(1), keys.size(1)
        states = state.new_empty(steps + 1, sentences, units)  # h_0 .. h_T
        states[0] = state
        queries = torch.empty_like(query_inputs)  # d, (T, B, A)
        gates = state.new_empty(steps, sentences, 4 * units)  # r, u, c, U_c h
        weights = state.new_empty(steps, sentences, positions)
        attention = AdditiveAttention(keys, energy)
        from_state = repeated_linear(state_weight, sentences)
        from_query = repeated_linear(query_weight, sentences)
        for t in range(steps):
            # both products with the state in one: W_z h for the query, U h for the gates
            projected = from_state(states[t])  # (B, A + 3H)
            torch.add(query_inputs[t], projected[:, :width], out=queries[t]).tanh_()
            attention.weigh(from_query(queries[t]), padding, weights[t])
            # W x + b: the part known before the loop, and the average of the values
            gates_x = torch.baddbmm(
                gate_inputs[t].unsqueeze(1), weights[t].unsqueeze(1), gate_values
            ).squeeze(1)  # (B, 3H)
            gates_h = projected[:, width:]
            reset_update, candidate, product = gates[t].split([2 * units, units, units], dim=1)
            # r and u stand side by side, so that one sigmoid makes both
            torch.add(gates_x[:, : 2 * units], gates_h[:, : 2 * units], out=reset_update).sigmoid_()
            reset, update = reset_update.chunk(2, dim=1)
            # U_c h by itself: the gradient of the reset gate needs it
            product.copy_(gates_h[:, 2 * units :])
            torch.addcmul(gates_x[:, 2 * units :], reset, product, out=candidate).tanh_()
            # h_{t+1} = c + u (h_t - c)
            torch.lerp(candidate, states[t], update, out=states[t + 1])
        ctx.save_for_backward(
            states, queries, gates, weights, keys, gate_values, state_weight, query_weight, energy
        )
        # a copy: the caller may write into what it gets, the backward pass reads ``states``
        return states[1:].clone(), weights

    @staticmethod
    @torch.autograd.function.once_differentiable
    @without_autocast
    def backward(  # type: ignore[override]  # torch declares (ctx, *grads)
        ctx: Any, grad_states: Tensor, grad_weights: Optional[Tensor]
    ) -> Tuple[Optional[Tensor], ...]:
        (states, queries, gates, weights, keys, gate_values, state_weight, query_weight, energy) = (
            ctx.saved_tensors
        )
        steps, sentences, width = queries.shape
        units = states.size(2)
        grad_state = torch.zeros_like(states[0])  # of h_t through what follows
        # of the outputs of state_weight, of x, of the outputs of query_weight
        grad_projected = states.new_empty(steps, sentences, width + 3 * units)
        grad_gates = states.new_empty(steps, sentences, 3 * units)
        grad_query = torch.empty_like(queries)
        attention = AdditiveAttention(keys, energy)
        attention.start_backward()
        from_query = repeated_linear(query_weight, sentences)
        to_query = repeated_linear(query_weight.t(), sentences)
        to_state = repeated_linear(state_weight.t(), sentences)
        for t in reversed(range(steps)):
            # of h_{t+1} (B, H): from the outputs, and from the steps after it
            grad_h = grad_states[t] + grad_state
            _gates_backward(
                grad_h, states[t], gates[t], grad_gates[t], grad_projected[t, :, width:]
            )
            # gradient of a_t: from the average, and from the attention that was returned
            grad_a = by_position(grad_gates[t], gate_values)  # (B, S)
            if grad_weights is not None:
                grad_a += grad_weights[t]
            # L d_t is computed again, which costs less than storing it for every step
            grad_query[t] = attention.backward(from_query(queries[t]), weights[t], grad_a)
            grad_d = to_query(grad_query[t])  # (B, A)
            grad_projected[t, :, :width] = tanh_backward(grad_d, queries[t])
            update = gates[t, :, units : 2 * units]
            # through both products, and directly where the update gate let h_t pass
            grad_state = to_state(grad_projected[t]).addcmul_(grad_h, update)
        grad_keys, grad_energy = attention.gradients()
        # the gradient of a matrix is one product over all steps, not a sum of T products
        over_steps = grad_projected.flatten(0, 1)  # (T B, A + 3H)
        return (
            grad_state,
            grad_projected[:, :, :width],
            grad_gates,
            grad_keys,
            # sum_t a_ti g_t
            torch.bmm(weights.permute(1, 2, 0), grad_gates.transpose(0, 1)),  # (B, S, 3H)
            None,
            over_steps.t() @ states[:-1].flatten(0, 1),
            grad_query.flatten(0, 1).t() @ queries.flatten(0, 1),
            grad_energy,
        )


def _gates_backward(
    grad_h: Tensor, state: Tensor, gates: Tensor, grad_x: Tensor, grad_h_gates: Tensor
) -> None:
    """Fill the gradients (B, 3H) of x_t and of U h_{t-1} from that of h_t (B, H)."""
    reset, update, candidate, product = gates.chunk(4, dim=1)
    units = state.size(1)
    grad_r, grad_u, grad_c = grad_x.chunk(3, dim=1)
    # h' = u h + (1 - u) c
    grad_c.copy_(tanh_backward(grad_h * (1 - update), candidate))
    grad_u.copy_(sigmoid_backward(grad_h * (state - candidate), update))
    # c = tanh(x_c + r * (U_c h))
    grad_r.copy_(sigmoid_backward(grad_c * product, reset))
    grad_h_gates[:, : 2 * units] = grad_x[:, : 2 * units]
    # of U_c h, which the reset gate scales
    torch.mul(grad_c, reset, out=grad_h_gates[:, 2 * units :])
