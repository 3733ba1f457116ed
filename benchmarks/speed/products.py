"""The matrix products of an update: how many operations, and how long they take alone."""

import math
import time
from collections import Counter
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

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
Layout = Tuple[Tuple[int, ...], Tuple[int, ...], torch.dtype, torch.device]  # of a tensor
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
        self.tokens, self.traffic = tokens, 0
        self.counts: Counter[Tuple[Layout, Layout]] = Counter()
        self.weights: Dict[int, int] = {}

    def __torch_dispatch__(
        self,
        function: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Optional[Dict[str, Any]] = None,
    ) -> Any:
        """Record the operation's products and compute it."""
        places = FACTORS.get(function.overloadpacket)
        if places:
            left, right = (args[place] for place in places)
            self._count(left, right)
            self._read(right)
        elif function in ATTENTION:
            self._attention(args, *ATTENTION[function])
        elif function in RNN_LAYER:
            self._rnn_layer(args[0], args[1], args[2], RNN_LAYER[function])
        elif function in CUDNN:
            times, first, sizes = CUDNN[function]
            self._cudnn(args[0], args[1], args[2], args[first], args[sizes], times)
        elif "mkldnn._linear_pointwise" in str(function):
            self._linear(*args[:2])
        elif any(name in str(function) for name in HIDING):
            raise RuntimeError(f"{function}: its products cannot be counted")
        return function(*args, **(kwargs or {}))

    def _count(self, left: torch.Tensor, right: torch.Tensor, times: int = 1) -> None:
        self.counts[_layout(left), _layout(right)] += times

    def _linear(self, inputs: torch.Tensor, arranged: torch.Tensor) -> None:
        """Record oneDNN's x weight^T; an arranged weight had some ordinary layout before."""
        weight = inputs.new_empty(arranged.shape) if arranged.is_mkldnn else arranged
        self._count(inputs, weight.t())
        self._read(arranged)

    def _read(self, factor: torch.Tensor) -> None:
        """Count the bytes of a right factor that is a weight."""
        if factor.dim() == 2:
            size = factor.numel() * factor.element_size()
            name = id(factor) if factor.is_mkldnn else factor.data_ptr()
            self.weights[name] = size
            self.traffic += size

    def _cudnn(
        self,
        inputs: torch.Tensor,
        weights: Sequence[torch.Tensor],
        stride: int,
        batch_first: bool,
        batch_sizes: Sequence[int],
        times: int,
    ) -> None:
        """Record all layers; inputs: (N, I) of packed sequences, else (B, T, I) or (T, B, I)."""
        if not batch_sizes:
            steps, sequences = inputs.shape[:2][::-1] if batch_first else inputs.shape[:2]
            batch_sizes = [sequences] * steps
        for place in range(0, len(weights), stride):
            of_inputs, of_states = weights[place], weights[place + 1]  # (4H, I), (4H, H)
            rows = of_inputs.new_empty(sum(batch_sizes), of_inputs.size(1))
            self._count(rows, of_inputs.t(), times)
            for sequences in batch_sizes:
                state = of_states.new_empty(sequences, of_states.size(1))
                self._count(state, of_states.t(), times)

    def _rnn_layer(
        self,
        inputs: torch.Tensor,
        input_weight: torch.Tensor,
        state_weight: torch.Tensor,
        times: int,
    ) -> None:
        """Record one product of inputs (T, B, I) with (4H, I), and T products with (4H, H)."""
        self._count(inputs.flatten(0, 1), input_weight.t(), times)
        state = inputs.new_empty(inputs.size(1), state_weight.size(1))
        self._count(state, state_weight.t(), times * inputs.size(0))

    def _attention(
        self, args: Sequence[Any], query_place: int, key_place: int, scores: int, contexts: int
    ) -> None:
        """Record so many products of queries and keys, and of weights and values."""
        query, key = args[query_place], args[key_place]  # (B, H, T, d), (B, H, S, d)
        heads, (steps, width), positions = query.shape[:2].numel(), query.shape[2:], key.size(2)
        weights = query.new_empty(heads, steps, positions)
        values = query.new_empty(heads, positions, width)
        keys = query.new_empty(heads, width, positions)
        self._count(query.new_empty(heads, steps, width), keys, scores)
        self._count(weights, values, contexts)

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
            fastest = min(
                timed(multiply, at_once, left.device.type)
                for multiply in ways(left, right)
                for _ in range(repeats)
            )
            total += number * fastest / at_once
        return total


def timed(compute: Callable[[], object], calls: int, device: str) -> float:
    """Return the seconds of so many calls, one after the other."""
    start = time.perf_counter()
    for _ in range(calls):
        compute()
    synchronise(device)
    return time.perf_counter() - start


def synchronise(device: str) -> None:
    """Wait for what the GPU has not finished yet."""
    if device == "cuda":
        torch.cuda.synchronize()


def ways(left: torch.Tensor, right: torch.Tensor) -> List[Callable[[], torch.Tensor]]:
    """Return torch.matmul, and oneDNN's linear map too for single-precision matrices on CPUs.

    The latter with the matrix as it is, unless it is part of a wider one, and arranged beforehand.
    """
    ways: List[Callable[[], torch.Tensor]] = [partial(torch.matmul, left, right)]
    single = left.dtype == right.dtype == torch.float32 and not left.is_cuda
    if single and left.dim() == right.dim() == 2 and torch.backends.mkldnn.is_available():
        linear = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
        arrange = getattr(torch.ops.mkldnn, "_reorder_linear_weight", None)
        if linear is not None and arrange is not None:
            weight = right.t()
            weights = [arrange(weight, left.size(0))]
            if weight.is_contiguous() or right.is_contiguous():
                weights.append(weight)
            ways += [partial(linear, left, weight, None, "none", [], "") for weight in weights]
    return ways


def _layout(tensor: torch.Tensor) -> Layout:
    return tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device


def _tensor(layout: Layout) -> torch.Tensor:
    shape, stride, dtype, device = layout
    # by way of the storage: rows of an expanded tensor are the same memory
    last = sum((size - 1) * step for size, step in zip(shape, stride))
    return torch.randn(last + 1, device=device).to(dtype).as_strided(shape, stride)


def _size(left: Layout, right: Layout) -> int:
    """Return the number of multiplications: rows x inner x columns, times the batch."""
    columns = 1 if len(right[0]) == 1 else right[0][-1]
    return math.prod(left[0]) * columns
