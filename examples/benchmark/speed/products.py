"""The matrix products of an update: how many operations, and how long they take alone."""

import math
import time
from collections import Counter

import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
# operation, whatever becomes of its result -> places of its two factors among the arguments
FACTORS = {
    **dict.fromkeys((aten.mm, aten.bmm, aten.mv), (0, 1)),
    **dict.fromkeys((aten.addmm, aten.addmv, aten.baddbmm), (1, 2)),
    **dict.fromkeys((aten.addmm_, aten.addmv_, aten.baddbmm_), (1, 2)),
}
# kernels of whole attentions: query's and key's places, and how many products of each kind
# (query x key, weights x value) they stand for; the backward pass makes the weights once more
FORWARD, BACKWARD = (0, 1, 1, 1), (1, 2, 2, 3)
ATTENTION = {
    getattr(aten, name).default: places
    for kind in ("flash_attention_for_cpu", "flash_attention", "efficient_attention",
                 "cudnn_attention")
    for ending, places in (("", FORWARD), ("_backward", BACKWARD))
    if hasattr(aten, name := f"_scaled_dot_product_{kind}{ending}")
}  # fmt: skip
# LSTM layers of oneDNN and of cuDNN: how often every product of the forward pass is done, and for
# cuDNN the places of the arguments that say whether the batch comes first, and the number of
# sequences at each step
RNN_LAYER = {aten.mkldnn_rnn_layer.default: 1, aten.mkldnn_rnn_layer_backward.default: 2}
CUDNN = {aten._cudnn_rnn.default: (1, 10, 14), aten._cudnn_rnn_backward.default: (2, 14, 18)}
HIDING = ("rnn_layer", "_cudnn_rnn", "scaled_dot_product", "_mkl_linear", "mkldnn_linear")


class Products(TorchDispatchMode):
    """Records the products inside the block, with the shapes and strides of their factors.

    Args:
        tokens: what the block works off: target tokens of an update, sentences that are translated.

    Right factors with two dimensions are taken for weights: true of a forward pass. ``traffic`` is
    the number of bytes of all of them, ``weights`` those of each.

    RuntimeError for a kernel that hides products; they would not be counted.
    """

    def __init__(self, tokens: int):
        super().__init__()
        self.tokens, self.counts = tokens, Counter()
        self.traffic, self.weights = 0, {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        places = FACTORS.get(function.overloadpacket)
        if places:
            left, right = (_layout(args[place]) for place in places)
            self.counts[left, right] += 1
            self._read(args[places[1]])
        elif function in ATTENTION:
            self._attention(args, *ATTENTION[function])
        elif function in RNN_LAYER:
            self._rnn_layer(*args[:3], RNN_LAYER[function])
        elif function in CUDNN:
            times, first, sizes = CUDNN[function]
            self._cudnn(*args[:3], args[first], args[sizes], times)
        elif "mkldnn._linear_pointwise" in str(function):
            self._linear(*args[:2])
        elif any(name in str(function) for name in HIDING):
            raise RuntimeError(f"{function}: its products cannot be counted")
        return function(*args, **(kwargs or {}))

    def _linear(self, inputs, arranged):
        """Record oneDNN's x weight^T; an arranged weight had some ordinary layout before."""
        weight = inputs.new_empty(arranged.shape) if arranged.is_mkldnn else arranged
        self.counts[_layout(inputs), _layout(weight.t())] += 1
        self._read(arranged)

    def _read(self, factor):
        if factor.dim() == 2:
            size = factor.numel() * factor.element_size()
            name = id(factor) if factor.is_mkldnn else factor.data_ptr()
            self.weights[name] = size
            self.traffic += size

    def _cudnn(self, inputs, weights, stride, batch_first, batch_sizes, times):
        """Record all layers; inputs: (N, I) of packed sequences, else (B, T, I) or (T, B, I)."""
        if not batch_sizes:
            steps, rows = inputs.shape[:2][::-1] if batch_first else inputs.shape[:2]
            batch_sizes = [rows] * steps
        for place in range(0, len(weights), stride):
            of_inputs, of_states = weights[place], weights[place + 1]  # (4H, I), (4H, H)
            rows = of_inputs.new_empty(sum(batch_sizes), of_inputs.size(1))
            self.counts[_layout(rows), _layout(of_inputs.t())] += times
            for sequences in batch_sizes:
                state = of_states.new_empty(sequences, of_states.size(1))
                self.counts[_layout(state), _layout(of_states.t())] += times

    def _rnn_layer(self, inputs, input_weight, state_weight, times):
        """Record one product of inputs (T, B, I) with (4H, I), and T products with (4H, H)."""
        rows = inputs.flatten(0, 1)
        state = inputs.new_empty(inputs.size(1), state_weight.size(1))
        self.counts[_layout(rows), _layout(input_weight.t())] += times
        self.counts[_layout(state), _layout(state_weight.t())] += times * inputs.size(0)

    def _attention(self, args, query_place, key_place, scores, contexts):
        query, key = args[query_place], args[key_place]  # (B, H, T, d), (B, H, S, d)
        heads, (steps, width), positions = query.shape[:2].numel(), query.shape[2:], key.size(2)
        weights = query.new_empty(heads, steps, positions)
        narrow = query.new_empty(heads, steps, width), query.new_empty(heads, width, positions)
        self.counts[tuple(map(_layout, narrow))] += scores
        self.counts[_layout(weights), _layout(weights.new_empty(heads, positions, width))] += (
            contexts
        )

    def operations(self) -> int:
        """Return the number of multiplications and additions."""
        return sum(2 * number * _size(*pair) for pair, number in self.counts.items())

    def seconds(self, repeats: int = 5) -> float:
        """Return the time of all products alone, one after the other: the limit of this machine.

        Each kind is timed ``repeats`` times, as many products at a time as take some
        milliseconds, by whoever computes it (``ways``); the fastest counts. On a GPU they follow
        one another without waiting, so that a launch is hidden behind the product before it.
        """
        total = 0.0
        for pair, number in self.counts.items():
            left, right = (_tensor(layout) for layout in pair)
            enough = 2e10 if left.is_cuda else 2e8
            at_once = max(1, min(1000 if left.is_cuda else number, int(enough / _size(*pair))))
            best = math.inf
            for multiply in ways(left, right):
                for _ in range(repeats):
                    start = time.perf_counter()
                    for _ in range(at_once):
                        multiply()
                    if left.is_cuda:
                        torch.cuda.synchronize()
                    best = min(best, (time.perf_counter() - start) / at_once)
            total += number * best
        return total


def ways(left, right):
    """Return torch.matmul, and oneDNN's linear map too for single-precision matrices on CPUs.

    The latter with the matrix as it is, unless it is part of a wider one, and arranged beforehand.
    """
    ways = [lambda: torch.matmul(left, right)]
    single = left.dtype == right.dtype == torch.float32 and not left.is_cuda
    if single and left.dim() == right.dim() == 2 and torch.backends.mkldnn.is_available():
        linear = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
        arrange = getattr(torch.ops.mkldnn, "_reorder_linear_weight", None)
        if linear is not None and arrange is not None:
            weight = right.t()
            weights = [arrange(weight, left.size(0))]
            if weight.is_contiguous() or right.is_contiguous():
                weights.append(weight)
            ways += [
                lambda weight=weight: linear(left, weight, None, "none", [], "")
                for weight in weights
            ]
    return ways


def _layout(tensor):
    return tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device


def _tensor(layout):
    shape, stride, dtype, device = layout
    # by way of the storage: rows of an expanded tensor are the same memory
    last = sum((size - 1) * step for size, step in zip(shape, stride))
    return torch.randn(last + 1, device=device).to(dtype).as_strided(shape, stride)


def _size(left, right) -> int:
    """Return the number of multiplications: rows x inner x columns, times the batch."""
    columns = 1 if len(right[0]) == 1 else right[0][-1]
    return math.prod(left[0]) * columns
