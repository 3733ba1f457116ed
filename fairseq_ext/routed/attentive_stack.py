"""Layers of routed_gru.py, one above the other, that look at the source at every step.

What it computes, for t = 1 .. T and layers l = 1 .. L (Eq. 11 to 13 of the card)::

    q = W_q [h^1_{t-1} ; .. ; h^L_{t-1}]                           the query
    e_i = energy . tanh(keys_i + q);  a_t = softmax(e)             additive attention
    h^1_t = layer 1 on projected_t + sum_i a_ti values_i           "values" are projected as well
    h^l_t = layer l on W^l (mask^l_t * h^{l-1}_t) + b^l            mask: of dropout

The context sum_i a_ti (annotation i) enters the first layer through a linear map; since the weights
sum to one, the annotations go through that map once per source position instead of the context at
every step. What depends on nothing that the loop makes is projected outside; gradients of weights
are products over the whole sequence after the backward loop.

Dimensions: as in routed_gru.py; G_l and O_l of layer l.
"""

from typing import Any, List, NamedTuple, Optional, Sequence, Tuple, cast

import torch
from torch import Tensor

from ..common.attention_gradient import AdditiveAttention, by_position
from ..common.products import repeated_linear
from .routed_gru import LayerPass, Recurrence


class StackedLayer(NamedTuple):
    """One layer of the stack.

    state: g^l before the first step (K, B, H). output: h^l before the first step (B, O_l).
    weight: W^l (G_l, O_{l-1}), bias: b^l (G_l,), mask: (T, B, O_{l-1}) or None; of the first layer
    all three are None. recurrence: the weights inside the layer.
    """

    state: Tensor
    output: Tensor
    weight: Optional[Tensor]
    bias: Optional[Tensor]
    mask: Optional[Tensor]
    recurrence: Recurrence


INPUTS = len(StackedLayer._fields) - 1  # all but the recurrence
FLAT = INPUTS + len(Recurrence._fields)  # tensors of a layer among the Function's arguments


def attentive_stack(
    projected: Tensor,
    keys: Tensor,
    values: Tensor,
    padding: Tensor,
    query_weight: Tensor,
    energy: Tensor,
    layers: Sequence[StackedLayer],
) -> Tuple[Tensor, Tensor, List[Tensor]]:
    """Return what all steps of all layers compute.

    Args:
        projected: what does not come from the source (T, B, G_1).
        keys: (B, S, A).
        values: the annotations' part of the first layer's projections (B, S, G_1).
        padding: (B, S) bool, True = padding.
        query_weight: W_q (A, O_1 + .. + O_L).
        energy: (A,).
        layers: from the bottom to the top.

    Returns:
        h^L (T, B, O_L), attention a (T, B, S), tau of each layer (T, B, n_l).
    """
    dtype = query_weight.dtype  # --amp: the loop runs in the precision of the weights
    flat: List[Optional[Tensor]] = []
    for layer in layers:
        inputs = cast(Sequence[Optional[Tensor]], layer[:INPUTS])
        flat += [None if part is None else part.to(dtype) for part in inputs]
        flat += layer.recurrence
    top, weights, *tau = _AttentiveStack.apply(
        projected.to(dtype), keys.to(dtype), values.to(dtype), padding, query_weight, energy, *flat
    )
    return top, weights, tau


class _AttentiveStack(torch.autograd.Function):
    """``attentive_stack`` with its gradient; ``flat`` are the tensors of the layers."""

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        keys: Tensor,
        values: Tensor,
        padding: Tensor,
        query_weight: Tensor,
        energy: Tensor,
        *flat: Optional[Tensor],
    ) -> Tuple[Tensor, ...]:
        # outputs that the loss does not read have the gradient None in place of zeros
        ctx.set_materialize_grads(False)
        steps, rows, _ = projected.shape
        with torch.autocast(projected.device.type, enabled=False):
            stack = _stacked(flat)
            layers = [_start(layer, projected) for layer in stack]
            weights = projected.new_empty(steps, rows, keys.size(1))  # a
            queries = projected.new_empty(steps, rows, keys.size(2))  # q
            attention = AdditiveAttention(keys, energy)
            to_query = repeated_linear(query_weight, rows)
            for t in range(steps):
                # the query reads the states of all layers before the step
                # (B, O_1 + .. + O_L)
                before = torch.cat([layer.outputs[t] for layer in layers], dim=1)
                queries[t] = to_query(before)
                attention.weigh(queries[t], padding, weights[t])
                # the context as a sum of projected annotations: no product with W in the loop
                torch.baddbmm(
                    projected[t].unsqueeze(1),
                    weights[t].unsqueeze(1),
                    values,
                    out=layers[0].projected[t].unsqueeze(1),
                )
                layers[0].forward(t)
                # a layer reads what the one below it has just written for the same step
                for lower, upper, (_, _, weight, bias, mask, _) in zip(
                    layers, layers[1:], stack[1:]
                ):
                    inputs = _masked(lower.outputs[t + 1], mask, t)
                    assert weight is not None and bias is not None  # of all but the first layer
                    torch.addmm(bias, inputs, weight.t(), out=upper.projected[t])
                    upper.forward(t)
        # equally many of every layer, None where there is no router: backward cuts the list by that
        saved = [tensor for layer in layers for tensor in layer.saved()]
        uppers = [part for layer in stack for part in (layer.weight, layer.mask)]
        ctx.depth = len(layers)
        ctx.save_for_backward(keys, values, query_weight, energy, weights, queries, *uppers, *saved)
        # copies: the caller may write into what it gets, the backward pass reads the layers'
        taus = (layer.tau.clone() for layer in layers)
        return (layers[-1].outputs[1:].clone(), weights.clone(), *taus)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(  # type: ignore[override]  # torch declares (ctx, *grads)
        ctx: Any,
        grad_top: Optional[Tensor],
        grad_weights: Optional[Tensor],
        *grad_taus: Optional[Tensor],
    ) -> Tuple[Optional[Tensor], ...]:
        keys, values, query_weight, energy, weights, queries, *rest = ctx.saved_tensors
        uppers, saved = rest[: 2 * ctx.depth], rest[2 * ctx.depth :]
        size = len(saved) // ctx.depth
        starts = range(0, len(saved), size)
        layers = [LayerPass.restored(saved[start : start + size]) for start in starts]
        for layer, grad_tau in zip(layers, grad_taus):
            # nobody outside reads g after the last step, so that it has no gradient from there
            layer.start_backward(None, grad_tau)
        with torch.autocast(keys.device.type, enabled=False):
            stack = _StackGradient(layers, uppers[::2], uppers[1::2])
            attention = _AttentionGradient(keys, values, query_weight, energy, weights, queries)
            for t in reversed(range(weights.size(0))):
                # back over step t: the layers from the top, then the attention before them
                stack.backward(t, None if grad_top is None else grad_top[t])
                grad_attention = None if grad_weights is None else grad_weights[t]
                # the query read the states of all layers before t: its gradient belongs to theirs
                stack.add(attention.backward(t, layers[0].grad_projected[t], grad_attention))
            # h before each step (T, B, O)
            before = torch.cat([layer.outputs[:-1] for layer in layers], dim=2)
            grads = attention.result(before, layers[0].grad_projected)
            return (layers[0].grad_projected, *grads, *stack.result())


def _stacked(flat: Sequence[Optional[Tensor]]) -> List[StackedLayer]:
    """Return the layers whose tensors stand one after the other in ``flat``."""
    parts: List[Any] = [flat[start : start + FLAT] for start in range(0, len(flat), FLAT)]
    return [StackedLayer._make([*part[:INPUTS], Recurrence(*part[INPUTS:])]) for part in parts]


def _start(layer: StackedLayer, projected: Tensor) -> LayerPass:
    """Return a layer before its first step, with room for its projections, which the loop fills."""
    steps, rows, width = projected.shape
    width = width if layer.weight is None else layer.weight.size(0)  # G_1, or G_l of a layer above
    room = projected.new_empty(steps, rows, width)
    return LayerPass.start(layer.recurrence, room, layer.state, layer.output)


def _masked(inputs: Tensor, mask: Optional[Tensor], t: int) -> Tensor:
    """Return the inputs (B, O_{l-1}) of step t after dropout; mask: (T, B, O_{l-1}) or None."""
    return inputs if mask is None else inputs * mask[t]


class _StackGradient:
    """The layers' backward loop. ``grads``: of each layer's output, from what comes later."""

    def __init__(
        self,
        layers: List[LayerPass],
        weights: Sequence[Optional[Tensor]],
        masks: Sequence[Optional[Tensor]],
    ):
        self.layers, self.weights, self.masks = layers, weights, masks
        self.grads = [torch.zeros_like(layer.outputs[0]) for layer in layers]

    def backward(self, t: int, grad_top: Optional[Tensor]) -> None:
        """Go back over step t, from the top; afterwards ``grads`` are of the step before."""
        if grad_top is not None:
            self.grads[-1] = self.grads[-1] + grad_top
        # the layer below gets its gradient from here before its own turn comes
        for number in reversed(range(len(self.layers))):
            layer, grad = self.layers[number], self.grads[number]
            # h_{t-1} of the same layer, which its router reads; g_{t-1} is the layer's own affair
            through_router = layer.backward(t, grad)
            before = torch.zeros_like(grad) if through_router is None else through_router
            self.grads[number] = before
            weight = self.weights[number]
            if weight is not None:  # it reads the layer below
                below = layer.grad_projected[t] @ weight  # (B, O_{l-1})
                lower = self.grads[number - 1]
                self.grads[number - 1] = lower + _masked(below, self.masks[number], t)

    def add(self, grad_before: Tensor) -> None:
        """Add the query's part (B, O_1 + .. + O_L) to the gradients of all layers' outputs."""
        sizes = [grad.size(1) for grad in self.grads]
        self.grads = [
            grad + more for grad, more in zip(self.grads, grad_before.split(sizes, dim=1))
        ]

    def result(self) -> List[Optional[Tensor]]:
        """Return the gradients of the layers' tensors, in the order of ``flat`` in ``forward``."""
        # g and h before the first step, W, b, mask, then the recurrence
        flat: List[Optional[Tensor]] = []
        for number, layer in enumerate(self.layers):
            flat += [layer.grad_state, self.grads[number]]
            if number:
                inputs = self.layers[number - 1].outputs[1:]
                mask = self.masks[number]
                inputs = inputs if mask is None else inputs * mask
                grad = layer.grad_projected.flatten(0, 1)  # (T B, G)
                # dropout's mask has no gradient
                flat += [grad.t() @ inputs.flatten(0, 1), grad.sum(dim=0), None]
            else:
                # the attention projects the inputs of the first layer
                flat += [None, None, None]
            flat += layer.weight_gradients()
        return flat


class _AttentionGradient:
    """The attention's backward loop."""

    def __init__(
        self,
        keys: Tensor,
        values: Tensor,
        query_weight: Tensor,
        energy: Tensor,
        weights: Tensor,
        queries: Tensor,
    ):
        self.values, self.weights, self.queries = values, weights, queries
        self.grad_queries = torch.empty_like(queries)
        self.attention = AdditiveAttention(keys, energy)
        self.attention.start_backward()
        self.to_states = repeated_linear(query_weight.t(), keys.size(0))

    def backward(self, t: int, grad_projected: Tensor, grad_weights: Optional[Tensor]) -> Tensor:
        """Return the gradient of [h^1 ; .. ; h^L] before t, (B, O_1 + .. + O_L).

        grad_projected: of the first layer's projections (B, G_1). grad_weights: of a_t (B, S).
        """
        # h^1 reads sum_i a_ti values_i: the gradient of a_ti is g . values_i
        grad_a = by_position(grad_projected, self.values)  # (B, S)
        if grad_weights is not None:
            grad_a = grad_a + grad_weights
        self.grad_queries[t] = self.attention.backward(self.queries[t], self.weights[t], grad_a)
        return self.to_states(self.grad_queries[t])

    def result(self, before: Tensor, grad_projected: Tensor) -> Tuple[Optional[Tensor], ...]:
        """Return the gradients of keys, values, padding (None), W_q and energy.

        before: [h^1 ; .. ; h^L] before all steps. grad_projected: of all steps (T, B, G_1).
        """
        grad_keys, grad_energy = self.attention.gradients()
        # (B, S, G_1)
        grad_values = torch.bmm(self.weights.permute(1, 2, 0), grad_projected.transpose(0, 1))
        # one product over all steps: sum_t g_t [h^1 ; .. ; h^L]_{t-1}
        grad_query = self.grad_queries.flatten(0, 1).t() @ before.flatten(0, 1)
        return grad_keys, grad_values, None, grad_query, grad_energy
