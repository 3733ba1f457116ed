"""Trainings in 16 bits go on from the parameters that their optimiser has in single precision."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any, Iterator

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.optim.fp16_optimizer import FP16Optimizer
    from torch import Tensor

logger = logging.getLogger(__name__)

KEY = "fp32_params"  # in the state of an optimiser: one tensor for each parameter


@patch(
    "fairseq.optim.fp16_optimizer",
    because="fairseq 0.12.2: a training with --fp16 or --bf16 that goes on from a checkpoint has "
    "parameters that were rounded to 16 bits",
)
def parameters_go_on_unrounded(module: PatchedModule) -> None:
    """Store the parameters in single precision with the state of the optimiser."""
    optimizer = module._FP16OptimizerMixin
    stock, load = optimizer.state_dict, optimizer.load_state_dict

    @functools.wraps(stock)
    def state_dict(self: FP16Optimizer) -> dict[str, Any]:
        return {**stock(self), KEY: [exact for _, exact in _pairs(self)]}

    @functools.wraps(load)
    def load_state_dict(
        self: FP16Optimizer,
        state_dict: dict[str, Any],
        optimizer_overrides: dict[str, Any] | None = None,
    ) -> None:
        others = {name: value for name, value in state_dict.items() if name != KEY}
        load(self, others, optimizer_overrides)
        if KEY in state_dict:
            _restore(self, state_dict[KEY])

    optimizer.state_dict, optimizer.load_state_dict = state_dict, load_state_dict


def _pairs(optimizer: FP16Optimizer) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield each parameter in 16 bits with its values in single precision, of one shape."""
    if not optimizer.has_flat_params:
        for parameter, exact in zip(optimizer.fp16_params, optimizer.fp32_params):
            yield parameter.data, exact.data
        return
    for device, flat in optimizer.fp32_params.items():
        start = 0
        for parameter in optimizer.fp16_params:
            if parameter.device.index == device:
                end = start + parameter.numel()
                yield parameter.data, flat.data[start:end].view_as(parameter)
                start = end


def _restore(optimizer: FP16Optimizer, stored: list[Tensor]) -> None:
    """Take the stored values, if the parameters of the checkpoint are the same, rounded."""
    pairs = list(_pairs(optimizer))
    if len(stored) != len(pairs) or not all(
        values.shape == rounded.shape and bool((values.to(rounded) == rounded).all())
        for values, (rounded, _) in zip(stored, pairs)
    ):
        logger.warning(
            "the model of the checkpoint has other parameters than its optimiser: the training "
            "goes on with those of the model"
        )
        return
    for values, (_, exact) in zip(stored, pairs):
        exact.copy_(values)
