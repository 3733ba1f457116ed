"""GRUs in blocks behind a router, for whole sequences at once.

One layer, for t = 1 .. T, with n routed blocks and one block that reads the input directly
(K = n + 1; n = 0 is a plain GRU, without a router). Equations have the numbers of the card::

    s = tanh(W_x x + b_s + W_h h_{t-1});  tau = softmax(W_tau s + b_tau)       Eq. 1 and 2
    p_k = tau_k (W_k x) + b_k           Eq. 3: W_k (tau_k x) + b_k, tau = 1 for the last block
    z_k, r_k = sigmoid(p_k + U_k g_k)   Eq. 4 and 5; g_k: state of the block before the step
    c_k = tanh(p_k + U_k (r_k * g_k));  g_k' = z_k * g_k + (1 - z_k) * c_k     Eq. 6 and 7
    h_t = [sum_k tau_k g_k' ; g_last']                                         Eq. 8; n = 0: g_last'

The caller projects the inputs of the whole sequence, W_x x + b_s and W x of all blocks, in one
product ("projected"): tau is a number, so that it can multiply afterwards. Inside the loop the
blocks are one batch. The loop is a torch.autograd.Function: only the products with the states stay
in its backward loop, since each step needs the gradient of the next one. The gradients of the
weights are sums over steps, and are computed after the loop as products over the whole sequence.

Dimensions: T steps, B sentences, S source positions, K blocks, n of them routed, H units of a
block, R units of the router, A attention, O = H or 2H output (h_t), G = R + 3HK projections. Gates
stand side by side in the order z, r, c.
"""

from typing import Any, NamedTuple, Optional, Sequence, Tuple, cast

import torch
from torch import Tensor

from ..common.recurrent import sigmoid_backward, tanh_backward


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
        """Return n."""
        return 0 if self.router_bias is None else self.router_bias.size(0)


class LayerValues(NamedTuple):
    """What a layer computes at every step.

    projected: (T, B, G). states: g (K, T + 1, B, H), the first before step 1. outputs: h
    (T + 1, B, O), likewise. gates: z and r (K, T, B, 2H). candidates: c (K, T, B, H). tau:
    (T, B, n). Of the router, or None without one: hidden: s (T, B, R). scale: tau of all blocks,
    1 for the last, (K, T, B, 1).
    """

    projected: Tensor
    states: Tensor
    outputs: Tensor
    gates: Tensor
    candidates: Tensor
    tau: Tensor
    hidden: Optional[Tensor] = None
    scale: Optional[Tensor] = None


class LayerPass:
    """All steps of one layer, forwards and backwards: their values and their gradients.

    It works in place on tensors that autograd does not see: ``forward(t)`` for t = 0 .. T-1, then
    ``start_backward`` and ``backward(t)`` for t = T-1 .. 0.

    Args:
        weights: of the recurrence.
        values: what the steps compute and the backward pass reads.
    """

    def __init__(self, weights: Recurrence, values: LayerValues):
        self.weights, self.routed, self.values = weights, weights.routed, values
        self.projected, self.states, self.outputs, self.gates = values[:4]
        self.candidates, self.tau = values.candidates, values.tau
        self.blocks, self.units = self.states.size(0), self.states.size(3)
        # the router's tensors are None without it; nothing reads them then
        self.hidden, self.scale = cast(Tensor, values.hidden), cast(Tensor, values.scale)
        self.router_state = cast(Tensor, weights.router_state)  # W_h
        self.router_output = cast(Tensor, weights.router_output)  # W_tau
        self.router_bias = cast(Tensor, weights.router_bias)  # b_tau
        self.router_units = self.router_state.size(0) if self.routed else 0

    @classmethod
    def start(
        cls, weights: Recurrence, projected: Tensor, state: Tensor, output: Tensor
    ) -> "LayerPass":
        """Return a layer before its first step.

        Args:
            weights: of the recurrence.
            projected: (T, B, G); step t is read by ``forward(t)``, not before.
            state: g before the first step (K, B, H).
            output: h before the first step (B, O).
        """
        steps, rows, _ = projected.shape
        blocks, units, routed = state.size(0), state.size(2), weights.routed
        new = projected.new_empty
        values = LayerValues(
            projected=projected,
            states=new(blocks, steps + 1, rows, units),
            outputs=new(steps + 1, rows, output.size(1)),
            gates=new(blocks, steps, rows, 2 * units),
            candidates=new(blocks, steps, rows, units),
            tau=new(steps, rows, routed),
        )
        values.states[:, 0] = state
        values.outputs[0] = output
        if weights.router_state is not None:
            values = values._replace(
                hidden=new(steps, rows, weights.router_state.size(0)),
                scale=projected.new_ones(blocks, steps, rows, 1),  # of the last block it stays 1
            )
        return cls(weights, values)

    def saved(self) -> Tuple[Optional[Tensor], ...]:
        """Return the tensors of which ``restored`` makes this layer again."""
        return (*self.weights, *self.values)

    @classmethod
    def restored(cls, tensors: Sequence[Tensor]) -> "LayerPass":
        """Return the layer of ``saved``; its forward steps are done."""
        count = len(Recurrence._fields)
        return cls(Recurrence(*tensors[:count]), LayerValues(*tensors[count:]))

    def _by_block(self, rows: Tensor) -> Tensor:
        """Return the blocks' part of (B, G) as (K, B, 3H); a view."""
        return rows[:, self.router_units :].unflatten(1, (self.blocks, -1)).transpose(0, 1)

    def forward(self, t: int) -> None:
        """Compute step t, in place."""
        weights, n, two = self.weights, self.routed, 2 * self.units
        before, after = self.states[:, t], self.states[:, t + 1]  # (K, B, H)
        gates, candidate = self.gates[:, t], self.candidates[:, t]
        inputs = self._by_block(self.projected[t])  # (K, B, 3H)
        bias = weights.bias.unsqueeze(1)  # (K, 1, 3H)
        recurrent = weights.state.transpose(1, 2)  # (K, H, 3H)
        if n:
            self._route(t)
            scale = self.scale[:, t]  # (K, B, 1)
            # Eq. 3 behind the projection: tau (W x) + b
            torch.addcmul(bias[..., :two], inputs[..., :two], scale, out=gates)
            torch.addcmul(bias[..., two:], inputs[..., two:], scale, out=candidate)
        else:
            torch.add(inputs[..., :two], bias[..., :two], out=gates)
            torch.add(inputs[..., two:], bias[..., two:], out=candidate)
        # Eq. 4 to 7: the candidate's product waits for the reset gate, those of z and r are one
        gates.baddbmm_(before, recurrent[..., :two]).sigmoid_()
        update, reset = gates.split(self.units, dim=2)
        candidate.baddbmm_(reset * before, recurrent[..., two:]).tanh_()
        torch.lerp(candidate, before, update, out=after)
        if n:  # Eq. 8
            shared, of_task = self.outputs[t + 1].split(self.units, dim=1)
            torch.sum(scale[:n] * after[:n], dim=0, out=shared)
            of_task.copy_(after[n])
        else:
            self.outputs[t + 1] = after[0]

    def _route(self, t: int) -> None:
        """Compute tau of step t (Eq. 1 and 2), in place."""
        hidden, tau = self.hidden[t], self.tau[t]
        inputs = self.projected[t, :, : self.router_units]
        torch.addmm(inputs, self.outputs[t], self.router_state.t(), out=hidden).tanh_()
        scores = torch.addmm(self.router_bias, hidden, self.router_output.t())
        torch.softmax(scores, dim=1, out=tau)
        self.scale[: self.routed, t, :, 0] = tau.t()

    def start_backward(self, grad_state: Optional[Tensor], grad_tau: Optional[Tensor]) -> None:
        """Take the gradients from outside: of the last g (K, B, H), of tau (T, B, n)."""
        self.grad_state = torch.zeros_like(self.states[:, 0])
        if grad_state is not None:
            self.grad_state += grad_state
        self.grad_tau = grad_tau
        self.grad_projected = torch.empty_like(self.projected)
        blocks, steps, rows, units = self.candidates.shape
        self.grad_gates = self.candidates.new_empty(blocks, steps, rows, 3 * units)
        self.grad_scores = torch.empty_like(self.tau)

    def backward(self, t: int, grad_output: Tensor) -> Optional[Tensor]:
        """Go back over step t, from the whole gradient of its output (B, O).

        Fills ``grad_projected[t]``; returns the gradient of the output before the step, which the
        router reads, or None without a router.
        """
        n, units, state = self.routed, self.units, self.weights.state
        before, after = self.states[:, t], self.states[:, t + 1]
        update, reset = self.gates[:, t].split(units, dim=2)
        candidate, grad = self.candidates[:, t], self.grad_state  # grad: of g', (K, B, H)
        if n:
            shared, of_task = grad_output.split(units, dim=1)
            grad[:n].addcmul_(self.scale[:n, t], shared)
            grad[n] += of_task
        else:
            grad[0] += grad_output
        pre = self.grad_gates[:, t]  # of the sums inside z, r, c: (K, B, 3H)
        grad_z, grad_r, grad_c = pre.split(units, dim=2)
        # g' = z g + (1 - z) c (Eq. 7)
        grad_z.copy_(sigmoid_backward(grad * (before - candidate), update))
        grad_c.copy_(tanh_backward(grad * (1 - update), candidate))
        grad_reset = torch.bmm(grad_c, state[:, 2 * units :])  # of r * g
        grad_r.copy_(sigmoid_backward(grad_reset * before, reset))
        # g enters g' directly, and r * g inside of c; the next line adds its part in z and r
        grad_before = torch.mul(grad, update).addcmul_(grad_reset, reset)
        grad_before.baddbmm_(pre[..., : 2 * units], state[:, : 2 * units])
        self.grad_state = grad_before
        grad_inputs = self._by_block(self.grad_projected[t])
        if not n:
            grad_inputs.copy_(pre)
            return None
        torch.mul(pre, self.scale[:, t], out=grad_inputs)
        inputs = self._by_block(self.projected[t])
        # tau_k multiplies twice: the block's state in Eq. 8 and its input in Eq. 3
        grad_tau = (after[:n] * shared).sum(dim=2) + (pre[:n] * inputs[:n]).sum(dim=2)  # (n, B)
        return self._route_backward(t, grad_tau.t())

    def _route_backward(self, t: int, grad_tau: Tensor) -> Tensor:
        """Return the gradient (B, O) of h_{t-1} from that of tau (B, n)."""
        tau = self.tau[t]
        if self.grad_tau is not None:
            grad_tau = grad_tau + self.grad_tau[t]
        grad_scores = self.grad_scores[t]  # (B, n)
        # of the softmax: tau (g - sum tau g)
        torch.mul(tau, grad_tau - (tau * grad_tau).sum(dim=1, keepdim=True), out=grad_scores)
        grad_hidden = tanh_backward(grad_scores @ self.router_output, self.hidden[t])
        self.grad_projected[t, :, : self.router_units] = grad_hidden
        return grad_hidden @ self.router_state

    def weight_gradients(self) -> Tuple[Optional[Tensor], ...]:
        """Return the gradient of each field of ``Recurrence``, in its shape and their order.

        They are products over all steps; those of the router are None where there is none.
        """
        two = 2 * self.units
        pre = self.grad_gates.flatten(1, 2)  # (K, T B, 3H)
        before = self.states[:, :-1]
        reset = (self.gates[..., self.units :] * before).flatten(1, 2)
        parts = [
            # U of z and r reads g, U of c reads r * g
            torch.bmm(pre[..., :two].transpose(1, 2), before.flatten(1, 2)),
            torch.bmm(pre[..., two:].transpose(1, 2), reset),
        ]
        of_blocks = pre.sum(dim=1), torch.cat(parts, dim=1)
        if not self.routed:
            return (*of_blocks, None, None, None)
        grad_hidden = self.grad_projected[..., : self.router_units].flatten(0, 1)  # (T B, R)
        grad_scores = self.grad_scores.flatten(0, 1)  # (T B, n)
        return (
            *of_blocks,
            grad_hidden.t() @ self.outputs[:-1].flatten(0, 1),
            grad_scores.t() @ self.hidden.flatten(0, 1),
            grad_scores.sum(dim=0),
        )


def routed_gru(
    projected: Tensor, state: Tensor, output: Tensor, weights: Recurrence
) -> Tuple[Tensor, Tensor, Tensor]:
    """Return what all steps of one layer compute.

    Args:
        projected: (T, B, G).
        state: g before the first step (K, B, H).
        output: h before the first step (B, O).
        weights: of the recurrence.

    Returns:
        h_1 .. h_T (T, B, O), tau (T, B, n), g after the last step (K, B, H).
    """
    dtype = weights.state.dtype  # --amp: the loop runs in the precision of the weights
    inputs = (tensor.to(dtype) for tensor in (projected, state, output))
    return _RoutedGRU.apply(*inputs, *weights)


class _RoutedGRU(torch.autograd.Function):
    """``routed_gru`` with its gradient; ``weights`` are the fields of ``Recurrence``."""

    @staticmethod
    def forward(
        ctx: Any, projected: Tensor, state: Tensor, output: Tensor, *weights: Any
    ) -> Tuple[Tensor, Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        with torch.autocast(projected.device.type, enabled=False):
            layer = LayerPass.start(Recurrence(*weights), projected, state, output)
            for t in range(projected.size(0)):
                layer.forward(t)
        ctx.save_for_backward(*layer.saved())
        # copies: the caller may write into what it gets, the backward pass reads the layer's
        return layer.outputs[1:].clone(), layer.tau.clone(), layer.states[:, -1].clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(  # type: ignore[override]  # torch declares (ctx, *grads)
        ctx: Any,
        grad_outputs: Optional[Tensor],
        grad_tau: Optional[Tensor],
        grad_state: Optional[Tensor],
    ) -> Tuple[Optional[Tensor], ...]:
        layer = LayerPass.restored(ctx.saved_tensors)
        steps = layer.projected.size(0)
        grad = torch.zeros_like(layer.outputs[0])
        with torch.autocast(grad.device.type, enabled=False):
            layer.start_backward(grad_state, grad_tau)
            for t in reversed(range(steps)):
                if grad_outputs is not None:
                    grad = grad + grad_outputs[t]
                through_router = layer.backward(t, grad)
                grad = torch.zeros_like(grad) if through_router is None else through_router
            grad_weights = layer.weight_gradients()
        return (layer.grad_projected, layer.grad_state, grad, *grad_weights)
