"""Parts of models that read zeros in the place of padding, while a model computes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Callable, ContextManager, Iterable, Iterator

if TYPE_CHECKING:
    from torch import Tensor, nn


@contextlib.contextmanager
def reading(part: nn.Module, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Let a part of a model read what ``change`` makes of its input."""
    hook = part.register_forward_pre_hook(lambda _part, inputs: (change(inputs[0]),))
    try:
        yield
    finally:
        hook.remove()


def behind(lengths: Tensor, size: int) -> Tensor:
    """Return (B, size), True behind the length of each recording or text, (B,)."""
    import torch

    return torch.arange(size, device=lengths.device) >= lengths.unsqueeze(1)


def zeros_after(frames: Tensor, lengths: Tensor) -> Tensor:
    """Return frames (B, C, T), zeros behind the length of each recording, (B,)."""
    return frames.masked_fill(behind(lengths, frames.size(2)).unsqueeze(1), 0)


def number_of_frames(extractor: nn.Module, samples: Tensor) -> Tensor:
    """Return the numbers of frames, at least 1, of recordings of so many samples, both (B,).

    Attention needs a frame of what is shorter than one.

    Args:
        extractor: one convolution after the other, without padding.
    """
    import torch

    for convolution in convolutions_in(extractor):
        kernel, stride = (getattr(convolution, name)[0] for name in ("kernel_size", "stride"))
        samples = torch.div(samples - kernel, stride, rounding_mode="floor") + 1
    return samples.clamp(min=1)


@contextlib.contextmanager
def zeros_behind(convolutions: Iterable[nn.Module], frames: int, lengths: Tensor) -> Iterator[None]:
    """Let 2-d convolutions, one after the other, read zeros behind the end of a recording.

    Args:
        convolutions: of (B, C, T, D), along T and D.
        frames: T of the first one's input.
        lengths: (B,) of the recordings in it.
    """
    import torch

    with contextlib.ExitStack() as stack:
        for convolution in convolutions:
            is_padding = behind(lengths, frames)
            stack.enter_context(zeros_at(convolution, is_padding[:, None, :, None]))
            kernel, stride, more = (
                getattr(convolution, name)[0] for name in ("kernel_size", "stride", "padding")
            )
            frames = (frames + 2 * more - kernel) // stride + 1
            lengths = torch.div(lengths + 2 * more - kernel, stride, rounding_mode="floor") + 1
        yield


def zeros_at(convolution: nn.Module, is_padding: Tensor) -> ContextManager[None]:
    """Let a convolution read zeros where ``is_padding``, which fits its input, is True."""
    return reading(convolution, lambda frames: frames.masked_fill(is_padding, 0))


@contextlib.contextmanager
def zeros_in_all(convolutions: Iterable[nn.Module], is_padding: Tensor | None) -> Iterator[None]:
    """Let convolutions of (B, C, T) read zeros where ``is_padding``, (B, T), is True."""
    with contextlib.ExitStack() as stack:
        if is_padding is not None:
            for convolution in convolutions:
                stack.enter_context(zeros_at(convolution, is_padding.unsqueeze(1)))
        yield


def convolutions_in(part: nn.Module) -> list[nn.Module]:
    """Return the convolutions in a part of a model."""
    import torch

    return [module for module in part.modules() if isinstance(module, torch.nn.Conv1d)]
