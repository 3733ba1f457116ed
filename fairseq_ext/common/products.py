"""Products of single precision on CPUs by oneDNN, where it is faster than the library below torch.

It adds up the same terms in another order than MKL, which torch multiplies with.
FAIRSEQ_EXT_ONEDNN=0 in the environment leaves all to torch.
"""

import contextlib
import os
from contextvars import ContextVar
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SWITCH = "FAIRSEQ_EXT_ONEDNN"
try:  # what torch.compile uses for frozen weights; torch without oneDNN has neither
    _arranged = torch.ops.mkldnn._reorder_linear_weight
    _linear = torch.ops.mkldnn._linear_pointwise
except AttributeError:
    _arranged = _linear = None
if os.environ.get(SWITCH) == "0":
    _arranged = _linear = None
WORTH_ARRANGING = 1 << 17  # numbers of a matrix; smaller ones gain nothing
FEW_ROWS = 32  # with fewer, arranging costs more than a search of some tens of steps gains
# multiplications of a product, some milliseconds; smaller ones gain nothing, and oneDNN prepares
# itself for every new shape, which takes half a millisecond
WORTH_ONEDNN = 1 << 27


class _Kept:
    """What is made of weights while they are at rest, until they are no more.

    made: {(id of the owner, names): (owner, value)}. arranged: {id of a matrix: (matrix, what
    oneDNN reads or None)}; the objects are kept so that no other one gets their id.
    """

    def __init__(self):
        self.made: Dict[Any, Tuple[Any, Any]] = {}
        self.arranged: Dict[int, Tuple[Tensor, Optional[Tensor]]] = {}

    def of(self, weight: Tensor, rows: int) -> Optional[Tensor]:
        """The matrix as oneDNN reads it, from its second use on; None for one that may be new."""
        known = id(weight) in self.arranged
        if not known and not isinstance(weight, nn.Parameter):
            return None
        if known and self.arranged[id(weight)][1] is None:
            self.arranged[id(weight)] = weight, _arranged(weight.detach(), rows)
        return self.arranged.setdefault(id(weight), (weight, None))[1]


_kept: ContextVar[Optional[_Kept]] = ContextVar("kept", default=None)


@contextlib.contextmanager
def resting_weights() -> Iterator[None]:
    """Within it no parameter changes and there are no gradients, as in the steps of a search.

    ``linear`` then arranges large matrices once, and ``made_once`` keeps what it is given. Both are
    gone afterwards.
    """
    token = _kept.set(_kept.get() or _Kept())
    try:
        yield
    finally:
        _kept.reset(token)


def at_rest() -> Optional[_Kept]:
    """What is kept, within ``resting_weights``; otherwise None."""
    return None if torch.is_grad_enabled() else _kept.get()


def made_once(make: Callable[[], Any], owner: Any, *names: Any) -> Any:
    """``make()``, one or several tensors that depend on parameters alone.

    With resting weights it is called once for each owner and names.
    """
    kept = at_rest()
    if kept is None:
        return make()
    key = (id(owner), *names)
    if key not in kept.made:
        value = make()
        kept.made[key] = owner, value
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Tensor):
                kept.arranged[id(one)] = one, None
    return kept.made[key][1]


def linear(inputs: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    """F.linear, x weight^T + bias; large products in single precision on CPUs by oneDNN.

    The gradient of x too, and those of gradients. The gradient of the weight, g^T x, gains nothing
    and is torch's.

    Args:
        inputs: x (.., I).
        weight: (O, I), in any memory layout.
        bias: (O,).
    """
    large = inputs.numel() * weight.size(0) >= WORTH_ONEDNN
    many = inputs.numel() >= FEW_ROWS * inputs.size(-1)
    kept = at_rest() if many and weight.numel() >= WORTH_ARRANGING else None
    if (kept is None and not large) or not _by_onednn(inputs, weight):
        return F.linear(inputs, weight, bias)
    rows = inputs.reshape(-1, inputs.size(-1))
    arranged = None if kept is None else kept.of(weight, rows.size(0))
    if arranged is not None:
        found = _linear(rows, arranged, bias, "none", [], "")
    elif large:
        found = (_Linear.apply if torch.is_grad_enabled() else _product)(rows, weight, bias)
    else:
        return F.linear(inputs, weight, bias)
    return found.view(*inputs.shape[:-1], weight.size(0))


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, weight, bias):
        ctx.save_for_backward(rows, weight)
        return _product(rows, weight, bias)

    @staticmethod
    def backward(ctx, grad):
        (rows, weight), needed = ctx.saved_tensors, ctx.needs_input_grad
        return (
            linear(grad, weight.t()) if needed[0] else None,
            grad.t() @ rows if needed[1] else None,
            grad.sum(dim=0) if needed[2] else None,
        )


def _product(rows: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    if not (weight.is_contiguous() or weight.t().is_contiguous()):
        weight = weight.contiguous()  # part of a wider matrix: oneDNN has but a loop for it
    return _linear(rows, weight, bias, "none", [], "")


def _by_onednn(*factors: Tensor) -> bool:
    """Whether all are what oneDNN is asked for, and no autocast changes them."""
    return (
        _linear is not None
        and all(one.device.type == "cpu" and one.dtype == torch.float32 for one in factors)
        and torch.backends.mkldnn.is_available()
        and not _autocast()
    )


def _autocast() -> bool:
    try:
        return torch.is_autocast_enabled("cpu")
    except TypeError:  # torch before 2.4 has a function for each device
        return torch.is_autocast_cpu_enabled()


def repeated_linear(weight: Tensor, rows: int) -> Callable[[Tensor], Tensor]:
    """The function x -> x weight^T, to be called many times.

    For the steps of a loop: oneDNN keeps the matrix in the order in which it reads it, so that
    this is done once and not at every call. Elsewhere it is ``F.linear``. No gradients: for use
    inside of autograd functions.

    Args:
        weight: (O, I), in any memory layout.
        rows: of x (rows, I).
    """
    on_cpu = weight.device.type == "cpu" and weight.dtype == torch.float32
    known = _arranged is not None and torch.backends.mkldnn.is_available()
    if not (on_cpu and known and weight.numel() >= WORTH_ARRANGING):
        return lambda x: F.linear(x, weight)
    arranged = _arranged(weight.detach(), rows)
    return lambda x: _linear(x, arranged, None, "none", [], "")
