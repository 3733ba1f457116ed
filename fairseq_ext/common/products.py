"""Products of single precision on CPUs by oneDNN, where it is faster than the library below torch.

It adds up the same terms in another order than MKL, which torch multiplies with.
FAIRSEQ_EXT_ONEDNN=0 in the environment leaves all to torch.
"""

import contextlib
import os
from contextvars import ContextVar
from typing import Any, Callable, Dict, Hashable, Iterator, Optional, Tuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Value = TypeVar("Value")
SWITCH = "FAIRSEQ_EXT_ONEDNN"
try:  # what torch.compile uses for frozen weights; torch without oneDNN has neither
    _arranged: Any = torch.ops.mkldnn._reorder_linear_weight
    _linear: Any = torch.ops.mkldnn._linear_pointwise
except AttributeError:
    _arranged = _linear = None
if os.environ.get(SWITCH) == "0":
    _arranged = _linear = None
WORTH_ARRANGING = 1 << 17  # numbers of a matrix; smaller ones gain nothing
# with fewer, as in a greedy search of single sentences, plain products are as fast; with five, the
# arranged ones take half the time, and arranging is paid for after three to eight steps
FEW_ROWS = 4
# multiplications of a product, some milliseconds; smaller ones gain nothing, and oneDNN prepares
# itself for every new shape, which takes half a millisecond
WORTH_ONEDNN = 1 << 27


class WeightCache:
    """What a search computes once from weights that do not change between its steps.

    A search makes one; searches with models that are not trained any more share one, which belongs
    to their generator. Layers read it through a context variable, since nothing else of the search
    reaches them: fairseq calls models with tokens and the incremental state, and these call
    ``torch.nn.Linear`` with its inputs alone. An attribute of the layers would be copied with the
    model and be shared by searches in other threads.

    values: {(module, names): what ``compute_once`` returned}. arranged: {matrix: its copy in
    oneDNN's order, None before its second use}. Modules and tensors are equal to themselves alone,
    and the dictionaries keep them alive.
    """

    def __init__(self) -> None:
        self.values: Dict[Tuple[Hashable, ...], Any] = {}
        self.arranged: Dict[Tensor, Optional[Tensor]] = {}

    def __reduce__(self) -> Any:
        """Let a copy of a generator compute its values itself: torch copies no arranged matrix."""
        return type(self), ()

    @contextlib.contextmanager
    def active(self) -> Iterator["WeightCache"]:
        """Declare that no parameter changes and no gradient is taken, as in the steps of a search.

        Inside, ``linear`` arranges large matrices once and ``compute_once`` stores its values here.
        """
        token = _active_cache.set(self)
        try:
            yield self
        finally:
            _active_cache.reset(token)

    def arrange(self, weight: Tensor, rows: int) -> Optional[Tensor]:
        """Return the matrix in oneDNN's order from its second use on, None before.

        None as well for a matrix that is no parameter and may be new in every step.
        """
        if weight not in self.arranged:
            if isinstance(weight, nn.Parameter):
                self.arranged[weight] = None
            return None
        return self.arrange_now(weight, rows)

    def arrange_now(self, weight: Tensor, rows: int) -> Tensor:
        """Return the matrix in oneDNN's order, from its first use on.

        It is stored unless the matrix is no parameter and may be new in every step.
        """
        arranged = self.arranged.get(weight)
        if arranged is None:
            arranged = _arranged(weight.detach(), rows)
            if weight in self.arranged or isinstance(weight, nn.Parameter):
                self.arranged[weight] = arranged
        return arranged

    def compute_once(self, make: Callable[[], Value], *key: Hashable) -> Value:
        """Return ``make()``, which is called once for each key.

        Matrices among the values may be arranged from their first use on, like parameters.
        """
        if key not in self.values:
            value = self.values[key] = make()
            for tensor in value if isinstance(value, tuple) else (value,):
                if isinstance(tensor, Tensor):
                    self.arranged[tensor] = None
        return self.values[key]


_active_cache: ContextVar[Optional[WeightCache]] = ContextVar("weight_cache", default=None)


def active_cache() -> Optional[WeightCache]:
    """Return the cache of the search that runs now, None outside and where gradients are taken."""
    return None if torch.is_grad_enabled() else _active_cache.get()


def compute_once(make: Callable[[], Value], module: nn.Module, *names: Hashable) -> Value:
    """Return ``make()``: a tensor, or a tuple of them, that depends on parameters alone.

    A search calls it once for each module and names.
    """
    cache = active_cache()
    return make() if cache is None else cache.compute_once(make, module, *names)


def linear(inputs: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    """Return x weight^T + bias as F.linear does; oneDNN computes large fp32 products on CPUs.

    oneDNN also computes the gradient of x, and gradients of gradients. The gradient of the weight,
    g^T x, would gain nothing and is torch's.

    Args:
        inputs: x (.., I).
        weight: (O, I), in any memory layout.
        bias: (O,), in any memory layout.
    """
    large = inputs.numel() * weight.size(0) >= WORTH_ONEDNN
    many = inputs.numel() >= FEW_ROWS * inputs.size(-1)
    cache = active_cache() if many and weight.numel() >= WORTH_ARRANGING else None
    if (cache is None and not large) or not _by_onednn(inputs, weight):
        return F.linear(inputs, weight, bias)
    rows = inputs.reshape(-1, inputs.size(-1))
    arranged = None if cache is None else cache.arrange(weight, rows.size(0))
    if arranged is not None:
        outputs = _onednn(rows, arranged, bias)
    elif large:
        outputs = (_Linear.apply if torch.is_grad_enabled() else _product)(rows, weight, bias)
    else:
        return F.linear(inputs, weight, bias)
    return outputs.view(*inputs.shape[:-1], weight.size(0))


class _Linear(torch.autograd.Function):
    """x weight^T + bias by oneDNN, with the gradients that ``linear`` names."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        ctx.save_for_backward(rows, weight)
        return _product(rows, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Optional[Tensor], ...]:
        (rows, weight), needed = ctx.saved_tensors, ctx.needs_input_grad
        return (
            linear(grad, weight.t()) if needed[0] else None,
            grad.t() @ rows if needed[1] else None,
            grad.sum(dim=0) if needed[2] else None,
        )


def _product(rows: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    """Return x weight^T + bias by oneDNN, of rows x (R, I) and a weight (O, I): (R, O)."""
    if not (weight.is_contiguous() or weight.t().is_contiguous()):
        weight = weight.contiguous()  # part of a wider matrix: oneDNN has but a loop for it
    return _onednn(rows, weight, bias)


def _onednn(rows: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    """Return the same, of a weight in oneDNN's order or contiguous either way."""
    # its strides are not read: the numbers of a bias would be those that follow its first one
    bias = None if bias is None else bias.contiguous()
    return _linear(rows, weight, bias, "none", [], "")


def _by_onednn(*factors: Tensor) -> bool:
    """True if all are float32 CPU tensors and autocast is off."""
    return (
        _linear is not None
        and all(factor.device.type == "cpu" and factor.dtype == torch.float32 for factor in factors)
        and torch.backends.mkldnn.is_available()
        and not is_autocast()
    )


def is_autocast() -> bool:
    """True if torch chooses the precision of CPU operations."""
    try:
        return torch.is_autocast_enabled("cpu")
    except TypeError:  # torch before 2.4 has a function for each device
        return torch.is_autocast_cpu_enabled()


def repeated_linear(
    weight: Tensor, rows: int, bias: Optional[Tensor] = None
) -> Callable[[Tensor], Tensor]:
    """Return the function x -> x weight^T + bias for the steps of a loop.

    The matrix is brought into oneDNN's order once and not in every call; where oneDNN gains nothing
    the function is ``F.linear``. It has no gradients: for use inside of autograd functions, and in
    a search, of which all loops share what is arranged.

    Args:
        weight: (O, I), in any memory layout.
        rows: of x (rows, I).
        bias: (O,), in any memory layout.
    """
    on_cpu = weight.device.type == "cpu" and weight.dtype == torch.float32
    has_onednn = _arranged is not None and torch.backends.mkldnn.is_available()
    if not (on_cpu and has_onednn and weight.numel() >= WORTH_ARRANGING):
        return lambda x: F.linear(x, weight, bias)
    cache = active_cache()
    arranged = (
        _arranged(weight.detach(), rows) if cache is None else cache.arrange_now(weight, rows)
    )
    return lambda x: _onednn(x, arranged, bias)
