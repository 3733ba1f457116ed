"""Backward passes in the precision of their forward passes."""

import functools
from contextlib import ExitStack
from typing import Any, Callable, Optional

import torch
from torch import Tensor


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
