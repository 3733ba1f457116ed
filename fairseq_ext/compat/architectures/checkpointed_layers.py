"""--checkpoint-activations and --offload-activations compute a layer again in the backward pass.

The second time must give what the first one gave: with the same dropout, in the same precision.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, Callable

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    import torch

    Precision = tuple[str, bool, torch.dtype]


@patch(
    "fairseq.modules.checkpoint_activations",
    because="fairseq 0.12.2: with --amp, --checkpoint-activations computes layers again outside of "
    "autocast, in another precision, so that gradients are of another forward pass",
)
def layers_are_repeated_in_their_precision(module: PatchedModule) -> None:
    """Compute the layer in the backward pass with the autocast of the forward pass."""
    stock = module._checkpointed_forward

    @functools.wraps(stock)
    def _checkpointed_forward(
        original_forward: Callable[..., Any], offload_to_cpu: bool, *args: Any, **kwargs: Any
    ) -> Any:
        precisions = [_precision(device) for device in ("cuda", "cpu")]
        if any(enabled for _, enabled, _ in precisions):
            original_forward = functools.partial(_in_precision, original_forward, precisions)
        return stock(original_forward, offload_to_cpu, *args, **kwargs)

    module._checkpointed_forward = _checkpointed_forward


def _precision(device: str) -> Precision:
    """Return the device, whether autocast is on there, and its type."""
    import torch

    if hasattr(torch, "get_autocast_dtype"):
        return device, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    if device == "cpu":  # torch before 2.4
        return device, torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype()
    return device, torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype()


def _in_precision(
    forward: Callable[..., Any], precisions: list[Precision], *args: Any, **kwargs: Any
) -> Any:
    """Return forward(...) with these kinds of autocast."""
    import torch

    with contextlib.ExitStack() as stack:
        for device, enabled, dtype in precisions:
            if enabled:
                # without the cache: it holds for one forward pass, and has no part in a second
                stack.enter_context(torch.autocast(device, dtype, cache_enabled=False))
        return forward(*args, **kwargs)


@patch(
    "fairseq.modules.checkpoint_activations",
    because="fairseq 0.12.2: with --checkpoint-activations, a layer whose input has no gradient, "
    "as behind embeddings that are frozen, is not trained, nor are those behind it",
)
def layers_behind_frozen_ones_are_trained(module: PatchedModule) -> None:
    """Give the layer one more input, which has a gradient."""
    stock = module._checkpointed_forward

    @functools.wraps(stock)
    def _checkpointed_forward(
        original_forward: Callable[..., Any], offload_to_cpu: bool, *args: Any, **kwargs: Any
    ) -> Any:
        torch = module.torch
        inputs = (*args, *kwargs.values())
        if torch.is_grad_enabled() and not any(_has_gradient(value) for value in inputs):
            layer = getattr(original_forward, "__self__", None)  # checkpoint_wrapper's module
            if isinstance(layer, torch.nn.Module) and any(map(_has_gradient, layer.parameters())):
                marker = torch.empty(0, requires_grad=True)
                forward = functools.partial(_without_first, original_forward)
                return stock(forward, offload_to_cpu, marker, *args, **kwargs)
        return stock(original_forward, offload_to_cpu, *args, **kwargs)

    module._checkpointed_forward = _checkpointed_forward


def _has_gradient(value: Any) -> bool:
    return bool(getattr(value, "requires_grad", False))


def _without_first(forward: Callable[..., Any], _: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """Return forward(...) without the first input."""
    return forward(*args, **kwargs)
