"""The GRU's recurrence over a whole sequence, with the gradients of its weights after the loop.

For t = 1 .. T, with the inputs W x_t + b of all steps projected before in one product::

    r, u = sigmoid(x_r + U_r h), sigmoid(x_u + U_u h);  c = tanh(x_c + r * (U_c h))
    h' = u * h + (1 - u) * c

The forward and the backward loop keep one product with the state each; the gradient of U is one
product over the whole sequence.

Dimensions: T steps, B sentences, H units; time comes first. Gates in the order r, u, c.
"""

import torch
from torch import Tensor

from .products import repeated_linear

sigmoid_backward = torch.ops.aten.sigmoid_backward
tanh_backward = torch.ops.aten.tanh_backward


def gru_loop(inputs: Tensor, state_weight: Tensor) -> Tensor:
    """W x + b (T, B, 3H), U (3H, H) -> h_1 .. h_T (T, B, H), with h_0 = 0."""
    with torch.autocast(inputs.device.type, enabled=False):
        return _Loop.apply(inputs.to(state_weight.dtype), state_weight)


class _Loop(torch.autograd.Function):
    @staticmethod
    def forward(ctx, inputs, state_weight):
        steps, sentences, _ = inputs.shape
        units = state_weight.size(1)
        states = inputs.new_empty(steps + 1, sentences, units)
        states[0] = 0
        gates = inputs.new_empty(steps, sentences, 4 * units)
        from_state = repeated_linear(state_weight, sentences)
        for t in range(steps):
            step_forward(inputs[t], from_state(states[t]), states[t], gates[t], states[t + 1])
        ctx.save_for_backward(states, gates, state_weight)
        return states[1:].clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_states):
        states, gates, state_weight = ctx.saved_tensors
        steps, sentences, units = grad_states.shape
        grad_state = torch.zeros_like(states[0])  # of h_t through what follows
        grad_inputs = states.new_empty(steps, sentences, 3 * units)
        grad_projected = torch.empty_like(grad_inputs)  # of U h
        to_state = repeated_linear(state_weight.t(), sentences)
        for t in reversed(range(steps)):
            grad = grad_states[t] + grad_state
            step_backward(grad, states[t], gates[t], grad_inputs[t], grad_projected[t])
            update = gates[t, :, units : 2 * units]
            grad_state = to_state(grad_projected[t]).addcmul_(grad, update)
        return grad_inputs, grad_projected.flatten(0, 1).t() @ states[:-1].flatten(0, 1)


def step_forward(inputs: Tensor, projected: Tensor, state: Tensor, gates: Tensor, after: Tensor):
    """One step, in place.

    Args:
        inputs: W x + b (B, 3H).
        projected: U h (B, 3H).
        state: h (B, H).
        gates: (B, 4H), filled with r, u, c and U_c h, which the backward pass needs.
        after: (B, H), filled with h'.
    """
    two = 2 * state.size(1)
    reset_update, candidate, product = gates.split([two, two // 2, two // 2], dim=1)
    torch.add(inputs[:, :two], projected[:, :two], out=reset_update).sigmoid_()
    reset, update = reset_update.chunk(2, dim=1)
    product.copy_(projected[:, two:])
    torch.addcmul(inputs[:, two:], reset, product, out=candidate).tanh_()
    torch.lerp(candidate, state, update, out=after)


def step_backward(grad: Tensor, state: Tensor, gates: Tensor, grad_inputs, grad_projected):
    """Fill the gradients (B, 3H) of a step's inputs and of U h from that of h' (B, H)."""
    reset, update, candidate, product = gates.chunk(4, dim=1)
    two = 2 * state.size(1)
    grad_r, grad_u, grad_c = grad_inputs.chunk(3, dim=1)
    grad_c.copy_(tanh_backward(grad * (1 - update), candidate))
    grad_u.copy_(sigmoid_backward(grad * (state - candidate), update))
    grad_r.copy_(sigmoid_backward(grad_c * product, reset))
    grad_projected[:, :two] = grad_inputs[:, :two]
    torch.mul(grad_c, reset, out=grad_projected[:, two:])
