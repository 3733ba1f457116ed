"""GRUs in blocks behind a router, for whole sequences at once.

One layer, for t = 1 .. T, with n routed blocks and one block that reads the input directly
(K = n + 1; n = 0 is a plain GRU, without a router)::

    s = tanh(W_x x + b_s + W_h h_{t-1});  tau = softmax(W_tau s + b_tau)       router
    p_k = tau_k (W_k x) + b_k                          W_k (tau_k x) + b_k, tau = 1 for the last
    z_k, r_k = sigmoid(p_k + U_k g_k)                  g_k: the block's own state before the step
    c_k = tanh(p_k + U_k (r_k * g_k));  g_k' = z_k * g_k + (1 - z_k) * c_k
    h_t = [sum_k tau_k g_k' ; g_last']                 n = 0: g_last' alone

The caller projects the inputs of the whole sequence, W_x x + b_s and W x of all blocks, in one
product ("projected"): tau is a number, so that it can multiply afterwards. Inside the loop the
blocks are one batch. It is a torch.autograd.Function: the backward loop keeps the products with
the states, which the recurrence does not let go of, and the gradients of all weights are products
over the whole sequence after it.

Dimensions: T steps, B sentences, S source positions, K blocks, n of them routed, H units of a
block, R units of the router, A attention, O = H or 2H output (h_t), G = R + 3HK projections. Gates
stand side by side in the order z, r, c.
"""

from typing import NamedTuple, Optional, Tuple

import torch
from torch import Tensor

sigmoid_backward = torch.ops.aten.sigmoid_backward
tanh_backward = torch.ops.aten.tanh_backward


class Recurrence(NamedTuple):
    """The weights of a layer that the loop needs.

    bias: b (K, 3H). state: U (K, 3H, H). Of the router, or None without one: router_state: W_h
    (R, O). router_output: W_tau (n, R). router_bias: b_tau (n,).
    """

    bias: Tensor
    state: Tensor
    router_state: Optional[Tensor] = None
    router_output: Optional[Tensor] = None
    router_bias: Optional[Tensor] = None

    @property
    def routed(self) -> int:
        """n."""
        return 0 if self.router_bias is None else self.router_bias.size(0)


class Layer:
    """The numbers of one layer at every step, and their gradients.

    It works in place on tensors that autograd does not see: ``forward(t)`` for t = 0 .. T-1, then
    ``start_backward`` and ``backward(t)`` for t = T-1 .. 0.

    Args:
        weights: of the recurrence.
        kept: what the backward pass needs, see ``start``.
    """

    def __init__(self, weights: Recurrence, *kept: Optional[Tensor]):
        self.weights, self.routed = weights, weights.routed
        self.projected, self.states, self.outputs, self.gates = kept[:4]
        self.candidates, self.tau, self.hidden, self.scale = kept[4:]
        self.blocks, self.units = self.states.size(0), self.states.size(3)
        self.router_units = weights.router_state.size(0) if self.routed else 0

    @classmethod
    def start(cls, weights: Recurrence, projected: Tensor, state: Tensor, output: Tensor):
        """A layer before its first step.

        Args:
            weights: of the recurrence.
            projected: (T, B, G); step t is read by ``forward(t)``, not before.
            state: g before the first step (K, B, H).
            output: h before the first step (B, O).
        """
        steps, rows, _ = projected.shape
        blocks, units, routed = state.size(0), state.size(2), weights.routed
        new, hidden, scale = projected.new_empty, None, None
        states = new(blocks, steps + 1, rows, units)  # g
        states[:, 0] = state
        outputs = new(steps + 1, rows, output.size(1))  # h
        outputs[0] = output
        gates = new(blocks, steps, rows, 2 * units)  # z, r
        candidates = new(blocks, steps, rows, units)  # c
        tau = new(steps, rows, routed)
        if routed:
            hidden = new(steps, rows, weights.router_state.size(0))  # s
            scale = projected.new_ones(blocks, steps, rows, 1)  # tau and 1
        return cls(weights, projected, states, outputs, gates, candidates, tau, hidden, scale)

    def saved(self) -> Tuple[Optional[Tensor], ...]:
        """Tensors to make this layer again with ``restored``."""
        kept = (self.projected, self.states, self.outputs, self.gates)
        return (*self.weights, *kept, self.candidates, self.tau, self.hidden, self.scale)

    @classmethod
    def restored(cls, tensors):
        count = len(Recurrence._fields)
        return cls(Recurrence(*tensors[:count]), *tensors[count:])

    def _by_block(self, rows: Tensor) -> Tensor:
        """The blocks' part of (B, G) as (K, B, 3H); a view."""
        return rows[:, self.router_units :].unflatten(1, (self.blocks, -1)).transpose(0, 1)

    def forward(self, t: int) -> None:
        """Fill in step t."""
        weights, n, two = self.weights, self.routed, 2 * self.units
        before, after = self.states[:, t], self.states[:, t + 1]  # (K, B, H)
        gates, candidate = self.gates[:, t], self.candidates[:, t]
        inputs = self._by_block(self.projected[t])  # (K, B, 3H)
        bias = weights.bias.unsqueeze(1)  # (K, 1, 3H)
        recurrent = weights.state.transpose(1, 2)  # (K, H, 3H)
        if n:
            self._route(t)
            scale = self.scale[:, t]  # (K, B, 1)
            torch.addcmul(bias[..., :two], inputs[..., :two], scale, out=gates)
            torch.addcmul(bias[..., two:], inputs[..., two:], scale, out=candidate)
        else:
            torch.add(inputs[..., :two], bias[..., :two], out=gates)
            torch.add(inputs[..., two:], bias[..., two:], out=candidate)
        gates.baddbmm_(before, recurrent[..., :two]).sigmoid_()
        update, reset = gates.split(self.units, dim=2)
        candidate.baddbmm_(reset * before, recurrent[..., two:]).tanh_()
        torch.lerp(candidate, before, update, out=after)
        if n:
            shared, own = self.outputs[t + 1].split(self.units, dim=1)
            torch.sum(scale[:n] * after[:n], dim=0, out=shared)
            own.copy_(after[n])
        else:
            self.outputs[t + 1] = after[0]

    def _route(self, t: int) -> None:
        weights, hidden, tau = self.weights, self.hidden[t], self.tau[t]
        inputs = self.projected[t, :, : self.router_units]
        torch.addmm(inputs, self.outputs[t], weights.router_state.t(), out=hidden).tanh_()
        scores = torch.addmm(weights.router_bias, hidden, weights.router_output.t())
        torch.softmax(scores, dim=1, out=tau)
        self.scale[: self.routed, t, :, 0] = tau.t()

    def start_backward(self, grad_state: Optional[Tensor], grad_tau: Optional[Tensor]) -> None:
        """Gradients from outside: of g after the last step (K, B, H), of tau (T, B, n)."""
        self.grad_state = torch.zeros_like(self.states[:, 0])
        if grad_state is not None:
            self.grad_state += grad_state
        self.grad_tau = grad_tau
        self.grad_projected = torch.empty_like(self.projected)
        blocks, steps, rows, units = self.candidates.shape
        self.grad_gates = self.candidates.new_empty(blocks, steps, rows, 3 * units)
        self.grad_scores = torch.empty_like(self.tau)

    def backward(self, t: int, grad_output: Tensor) -> Optional[Tensor]:
        """Step t, from the whole gradient of its output (B, O).

        Fills ``grad_projected[t]``; returns the gradient of the output before the step, which the
        router reads, or None without a router.
        """
        n, units, state = self.routed, self.units, self.weights.state
        before, after = self.states[:, t], self.states[:, t + 1]
        update, reset = self.gates[:, t].split(units, dim=2)
        candidate, grad = self.candidates[:, t], self.grad_state  # grad: of g', (K, B, H)
        if n:
            shared, own = grad_output.split(units, dim=1)
            grad[:n].addcmul_(self.scale[:n, t], shared)
            grad[n] += own
        else:
            grad[0] += grad_output
        pre = self.grad_gates[:, t]  # of the sums inside z, r, c: (K, B, 3H)
        grad_z, grad_r, grad_c = pre.split(units, dim=2)
        grad_z.copy_(sigmoid_backward(grad * (before - candidate), update))
        grad_c.copy_(tanh_backward(grad * (1 - update), candidate))
        grad_reset = torch.bmm(grad_c, state[:, 2 * units :])  # of r * g
        grad_r.copy_(sigmoid_backward(grad_reset * before, reset))
        grad_before = torch.mul(grad, update).addcmul_(grad_reset, reset)
        grad_before.baddbmm_(pre[..., : 2 * units], state[:, : 2 * units])
        self.grad_state = grad_before
        grad_inputs = self._by_block(self.grad_projected[t])
        if not n:
            grad_inputs.copy_(pre)
            return None
        torch.mul(pre, self.scale[:, t], out=grad_inputs)
        inputs = self._by_block(self.projected[t])
        grad_tau = (after[:n] * shared).sum(dim=2) + (pre[:n] * inputs[:n]).sum(dim=2)  # (n, B)
        return self._route_backward(t, grad_tau.t())

    def _route_backward(self, t: int, grad_tau: Tensor) -> Tensor:
        weights, tau = self.weights, self.tau[t]
        if self.grad_tau is not None:
            grad_tau = grad_tau + self.grad_tau[t]
        grad_scores = self.grad_scores[t]  # (B, n)
        torch.mul(tau, grad_tau - (tau * grad_tau).sum(dim=1, keepdim=True), out=grad_scores)
        grad_hidden = tanh_backward(grad_scores @ weights.router_output, self.hidden[t])
        self.grad_projected[t, :, : self.router_units] = grad_hidden
        return grad_hidden @ weights.router_state

    def weight_gradients(self) -> Tuple[Optional[Tensor], ...]:
        """Of each field of ``Recurrence``: products over all steps."""
        two = 2 * self.units
        pre = self.grad_gates.flatten(1, 2)  # (K, T B, 3H)
        before = self.states[:, :-1]
        reset = (self.gates[..., self.units :] * before).flatten(1, 2)
        parts = [
            torch.bmm(pre[..., :two].transpose(1, 2), before.flatten(1, 2)),
            torch.bmm(pre[..., two:].transpose(1, 2), reset),
        ]
        found = (pre.sum(dim=1), torch.cat(parts, dim=1))
        if not self.routed:
            return (*found, None, None, None)
        grad_hidden = self.grad_projected[..., : self.router_units].flatten(0, 1)  # (T B, R)
        grad_scores = self.grad_scores.flatten(0, 1)  # (T B, n)
        return (
            *found,
            grad_hidden.t() @ self.outputs[:-1].flatten(0, 1),
            grad_scores.t() @ self.hidden.flatten(0, 1),
            grad_scores.sum(dim=0),
        )


def routed_gru(
    projected: Tensor, state: Tensor, output: Tensor, weights: Recurrence
) -> Tuple[Tensor, Tensor, Tensor]:
    """All steps of one layer.

    Args:
        projected: (T, B, G).
        state: g before the first step (K, B, H).
        output: h before the first step (B, O).
        weights: of the recurrence.

    Returns:
        h_1 .. h_T (T, B, O), tau (T, B, n), g after the last step (K, B, H).
    """
    dtype = weights.state.dtype  # --amp: the loop runs in the precision of the weights
    inputs = (one.to(dtype) for one in (projected, state, output))
    return _RoutedGRU.apply(*inputs, *weights)


class _RoutedGRU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, projected, state, output, *weights):
        ctx.set_materialize_grads(False)
        with torch.autocast(projected.device.type, enabled=False):
            layer = Layer.start(Recurrence(*weights), projected, state, output)
            for t in range(projected.size(0)):
                layer.forward(t)
        ctx.save_for_backward(*layer.saved())
        return layer.outputs[1:].clone(), layer.tau.clone(), layer.states[:, -1].clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_outputs, grad_tau, grad_state):
        layer = Layer.restored(ctx.saved_tensors)
        steps = layer.projected.size(0)
        grad = torch.zeros_like(layer.outputs[0])
        with torch.autocast(grad.device.type, enabled=False):
            layer.start_backward(grad_state, grad_tau)
            for t in reversed(range(steps)):
                if grad_outputs is not None:
                    grad = grad + grad_outputs[t]
                through_router = layer.backward(t, grad)
                grad = torch.zeros_like(grad) if through_router is None else through_router
            found = layer.weight_gradients()
        return (layer.grad_projected, layer.grad_state, grad, *found)
