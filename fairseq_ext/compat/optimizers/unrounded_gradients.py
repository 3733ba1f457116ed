"""--memory-efficient-fp16 and -bf16: optimisers step with gradients in single precision."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.optim import FairseqOptimizer
    from fairseq.optim.fp16_optimizer import MemoryEfficientFP16Optimizer
    from torch import Tensor
    from torch.nn import Parameter
    from torch.optim import Optimizer

# packages whose optimisers treat each parameter by itself
ONE_BY_ONE = ("fairseq.optim.", "torch.optim.")
SHARDED = "fairseq.optim.shard"  # but for this one, which distributes them over processes


@patch(
    "fairseq.optim.fp16_optimizer",
    because="fairseq 0.12.2: --memory-efficient-fp16 divides gradients by the loss scale and the "
    "batch in 16 bits, before adam, adafactor, adamax, nag and composite step with them: those "
    "below 3e-8 become zero, whatever the loss scale",
)
def gradients_are_divided_in_single_precision(module: PatchedModule) -> None:
    """Multiply the gradient of each parameter in single precision, when its turn comes."""
    optimizer = module._MemoryEfficientFP16OptimizerMixin
    stock = optimizer.step

    @functools.wraps(stock)
    def step(
        self: MemoryEfficientFP16Optimizer,
        closure: Callable[[], Any] | None = None,
        groups: Any = None,
    ) -> None:
        wrapped = self.wrapped_optimizer
        scaled = getattr(self, "supports_step_with_scale", False)
        if scaled or closure is not None or not wrapped.supports_memory_efficient_fp16:
            return stock(self, closure, groups)
        factor, self._multiply_factor = self._multiply_factor, 1.0
        steps = [*steps_of(wrapped, groups)]
        if not all(map(is_one_by_one, steps)):
            with multiplied(wrapped.params, factor):
                return stock(self, closure, groups)
        for inner in steps:
            step_each(inner.optimizer, factor)
        if self.scaler is not None:
            self.scaler.update()

    optimizer.step = step


def steps_of(optimizer: FairseqOptimizer, groups: Any) -> Iterator[FairseqOptimizer]:
    """Yield the optimisers that step, in their order.

    Args:
        groups: names of those optimisers of a composite one that step; None for all.
    """
    parts = getattr(optimizer.optimizer, "optimizers", None)
    if parts is None:
        yield optimizer
    else:
        for name, part in parts.items():
            if groups is None or name in groups:
                yield from steps_of(part, None)


def is_one_by_one(optimizer: FairseqOptimizer) -> bool:
    """True if a step is the same with one parameter after another.

    Those of plugins may read all gradients, as for a norm: they get all at once, in 32 bits.
    """
    from fairseq.optim import FairseqOptimizer

    home = type(optimizer.optimizer).__module__
    is_inherited = type(optimizer).step is FairseqOptimizer.step
    return is_inherited and f"{home}.".startswith(ONE_BY_ONE) and home != SHARDED


def step_each(optimizer: Optimizer, factor: float | Tensor) -> None:
    """Step with one parameter after another, so that a single gradient has 32 bits at a time.

    What a step writes into a group, such as `lr_old` of nag, is that of a step with the whole one.
    """
    groups = optimizer.param_groups
    try:
        for group in groups:
            others = {name: value for name, value in group.items() if name != "params"}
            for parameter in group["params"]:
                single = {**others, "params": [parameter]}
                optimizer.param_groups = [single]
                with multiplied([parameter], factor):
                    optimizer.step()
                group.update({**single, "params": group["params"]})
    finally:
        optimizer.param_groups = groups


@contextlib.contextmanager
def multiplied(parameters: Iterable[Parameter], factor: float | Tensor) -> Iterator[None]:
    """Context in which gradients are multiplied, and have at least single precision.

    Afterwards they are as fairseq leaves them, multiplied and rounded.
    """
    rounded = []
    for parameter in parameters:
        gradient = parameter.grad
        if gradient is not None:
            values = gradient.data
            scale = factor if isinstance(factor, float) else factor.to(gradient.device)
            if values.element_size() == 2:
                gradient.data = values.float().mul_(scale)
                rounded.append((gradient, values))
            values.mul_(scale)
    try:
        yield
    finally:
        for gradient, values in rounded:
            gradient.data = values
