"""Layers of routed_gru.py, one above the other, that look at the source at every step.

What it computes, for t = 1 .. T and layers l = 1 .. L::

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

from typing import List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor

from .attention_gradient import AdditiveScores, by_position
from .products import repeated_linear
from .routed_gru import Layer, Recurrence


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


OWN = len(StackedLayer._fields) - 1
FLAT = OWN + len(Recurrence._fields)  # tensors of a layer among the Function's arguments


def attentive_stack(
    projected: Tensor,
    keys: Tensor,
    values: Tensor,
    padding: Tensor,
    query_weight: Tensor,
    energy: Tensor,
    layers: Sequence[StackedLayer],
) -> Tuple[Tensor, Tensor, List[Tensor]]:
    """All steps of all layers.

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
        moved = [part if part is None else part.to(dtype) for part in layer[:OWN]]
        flat += [*moved, *layer.recurrence]
    top, weights, *tau = _AttentiveStack.apply(
        projected.to(dtype), keys.to(dtype), values.to(dtype), padding, query_weight, energy, *flat
    )
    return top, weights, tau


class _AttentiveStack(torch.autograd.Function):
    @staticmethod
    def forward(ctx, projected, keys, values, padding, query_weight, energy, *flat):
        ctx.set_materialize_grads(False)
        steps, rows, _ = projected.shape
        with torch.autocast(projected.device.type, enabled=False):
            given = _stacked(flat)
            layers = [_start(number, one, projected) for number, one in enumerate(given)]
            weights = projected.new_empty(steps, rows, keys.size(1))  # a
            queries = projected.new_empty(steps, rows, keys.size(2))  # q
            attention = AdditiveScores(keys, energy)
            to_query = repeated_linear(query_weight, rows)
            for t in range(steps):
                before = torch.cat([layer.outputs[t] for layer in layers], dim=1)
                queries[t] = to_query(before)
                scores = attention.scores(queries[t]).masked_fill_(padding, float("-inf"))
                torch.softmax(scores, dim=1, out=weights[t])
                torch.baddbmm(
                    projected[t].unsqueeze(1),
                    weights[t].unsqueeze(1),
                    values,
                    out=layers[0].projected[t].unsqueeze(1),
                )
                layers[0].forward(t)
                for lower, upper, one in zip(layers, layers[1:], given[1:]):
                    inputs = _masked(lower.outputs[t + 1], one.mask, t)
                    torch.addmm(one.bias, inputs, one.weight.t(), out=upper.projected[t])
                    upper.forward(t)
        kept = [tensor for layer in layers for tensor in layer.saved()]
        uppers = [part for one in given for part in (one.weight, one.mask)]
        ctx.depth = len(layers)
        ctx.save_for_backward(keys, values, query_weight, energy, weights, queries, *uppers, *kept)
        taus = (layer.tau.clone() for layer in layers)
        return (layers[-1].outputs[1:].clone(), weights.clone(), *taus)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_top, grad_weights, *grad_taus):
        keys, values, query_weight, energy, weights, queries, *rest = ctx.saved_tensors
        uppers, kept = rest[: 2 * ctx.depth], rest[2 * ctx.depth :]
        size = len(kept) // ctx.depth
        layers = [
            Layer.restored(kept[number * size : (number + 1) * size]) for number in range(ctx.depth)
        ]
        for layer, grad_tau in zip(layers, grad_taus):
            layer.start_backward(None, grad_tau)
        with torch.autocast(keys.device.type, enabled=False):
            stack = _StackGradient(layers, uppers[::2], uppers[1::2])
            attention = _AttentionGradient(keys, values, query_weight, energy, weights, queries)
            for t in reversed(range(weights.size(0))):
                stack.backward(t, None if grad_top is None else grad_top[t])
                grad_attention = None if grad_weights is None else grad_weights[t]
                stack.add(attention.backward(t, layers[0].grad_projected[t], grad_attention))
            before = torch.cat([layer.outputs[:-1] for layer in layers], dim=2)
            grads = attention.result(before, layers[0].grad_projected)
            return (layers[0].grad_projected, *grads, *stack.result())


def _stacked(flat) -> List[StackedLayer]:
    parts = [flat[start : start + FLAT] for start in range(0, len(flat), FLAT)]
    return [StackedLayer(*part[:OWN], Recurrence(*part[OWN:])) for part in parts]


def _start(number: int, one: StackedLayer, projected: Tensor) -> Layer:
    steps, rows, width = projected.shape
    width = one.weight.size(0) if number else width
    room = projected.new_empty(steps, rows, width)
    return Layer.start(one.recurrence, room, one.state, one.output)


def _masked(inputs: Tensor, mask: Optional[Tensor], t) -> Tensor:
    return inputs if mask is None else inputs * mask[t]


class _StackGradient:
    """The layers' backward loop. ``grads``: of each layer's output, from what comes later."""

    def __init__(self, layers: List[Layer], weights, masks):
        self.layers, self.weights, self.masks = layers, weights, masks
        self.grads = [torch.zeros_like(layer.outputs[0]) for layer in layers]

    def backward(self, t: int, grad_top: Optional[Tensor]) -> None:
        """Step t of all layers, from the top; afterwards ``grads`` are of the step before."""
        if grad_top is not None:
            self.grads[-1] = self.grads[-1] + grad_top
        for number in reversed(range(len(self.layers))):
            layer, grad = self.layers[number], self.grads[number]
            through_router = layer.backward(t, grad)
            before = torch.zeros_like(grad) if through_router is None else through_router
            self.grads[number] = before
            if number:
                below = layer.grad_projected[t] @ self.weights[number]
                lower = self.grads[number - 1]
                self.grads[number - 1] = lower + _masked(below, self.masks[number], t)

    def add(self, grad_before: Tensor) -> None:
        """What the query adds to the gradients of all layers' outputs (B, O_1 + .. + O_L)."""
        sizes = [grad.size(1) for grad in self.grads]
        self.grads = [
            grad + more for grad, more in zip(self.grads, grad_before.split(sizes, dim=1))
        ]

    def result(self) -> List[Optional[Tensor]]:
        """In the order of the Function's arguments."""
        flat: List[Optional[Tensor]] = []
        for number, layer in enumerate(self.layers):
            flat += [layer.grad_state, self.grads[number]]
            if number:
                inputs = self.layers[number - 1].outputs[1:]
                mask = self.masks[number]
                inputs = inputs if mask is None else inputs * mask
                grad = layer.grad_projected.flatten(0, 1)  # (T B, G)
                flat += [grad.t() @ inputs.flatten(0, 1), grad.sum(dim=0), None]
            else:
                flat += [None, None, None]
            flat += layer.weight_gradients()
        return flat


class _AttentionGradient:
    """The attention's backward loop."""

    def __init__(self, keys, values, query_weight, energy, weights, queries):
        self.values, self.weights, self.queries = values, weights, queries
        self.grad_queries = torch.empty_like(queries)
        self.scores = AdditiveScores(keys, energy)
        self.scores.start_backward()
        self.to_states = repeated_linear(query_weight.t(), keys.size(0))

    def backward(self, t: int, grad_projected: Tensor, grad_weights: Optional[Tensor]) -> Tensor:
        """Gradient (B, G_1) of the first layer's projections -> of [h^1 ; .. ; h^L] before t."""
        weights = self.weights[t]
        grad_a = by_position(grad_projected, self.values)  # (B, S)
        if grad_weights is not None:
            grad_a = grad_a + grad_weights
        grad_e = weights * (grad_a - (weights * grad_a).sum(dim=1, keepdim=True))
        self.grad_queries[t] = self.scores.backward(self.queries[t], grad_e)
        return self.to_states(self.grad_queries[t])

    def result(self, before: Tensor, grad_projected: Tensor):
        """Of keys, values, padding, W_q and energy; before: [h^1 ; .. ; h^L] of all steps."""
        grad_keys, grad_energy = self.scores.gradients()
        grad_values = torch.bmm(self.weights.permute(1, 2, 0), grad_projected.transpose(0, 1))
        grad_query = self.grad_queries.flatten(0, 1).t() @ before.flatten(0, 1)
        return grad_keys, grad_values, None, grad_query, grad_energy
