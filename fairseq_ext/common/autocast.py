"""Autocast (--amp) where torch's own choice of the precision does not do."""

import functools
from contextlib import ExitStack, contextmanager
from typing import Any, Callable, Iterator, Optional

import torch
from torch import Tensor

from .products import is_autocast


def without_autocast(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Return the backward pass of an autograd function, with autocast off inside.

    torch runs it with the autocast of the place where gradients are taken. A loop would round its
    gradient in every step there, though its forward pass has run without.
    """

    @functools.wraps(backward)
    def in_own_precision(ctx: Any, *grads: Optional[Tensor]) -> Any:
        with ExitStack() as stack:
            for device in {grad.device.type for grad in grads if grad is not None}:
                stack.enter_context(torch.autocast(device, enabled=False))
            return backward(ctx, *grads)

    return in_own_precision


def has_bfloat16() -> bool:
    """True if oneDNN multiplies bfloat16 on this CPU; False with torch 2.0, which cannot say."""
    supports: Callable[[], bool] = getattr(
        torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False
    )
    return torch.backends.mkldnn.is_available() and supports()


@contextmanager
def lstm_precision(weight: Tensor) -> Iterator[Callable[[Tensor], Tensor]]:
    """Yield what converts the inputs of torch's LSTM that has the parameter ``weight``.

    Under autocast torch gives LSTMs on CPUs to oneDNN in bfloat16, also where it has none: "could
    not create a primitive descriptor". There autocast is off inside, and the precision is that of
    the weights.
    """
    if weight.device.type != "cpu" or not is_autocast() or has_bfloat16():
        yield lambda tensor: tensor
        return
    with torch.autocast("cpu", enabled=False):
        yield lambda tensor: tensor.to(weight.dtype)
