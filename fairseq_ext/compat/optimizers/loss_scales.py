"""Loss scales of --fp16 and --amp: trainings that go on from a checkpoint keep theirs."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after

if TYPE_CHECKING:
    from fairseq.optim.amp_optimizer import AMPOptimizer
    from fairseq.optim.fp16_optimizer import FP16Optimizer

# in the state of an optimiser
COUNTERS, AMP_SCALE = "loss_scale_counters", "amp_scale"
# what the scaler of --fp16 counts; fairseq stores the scale itself
COUNTED = ("_iter", "_last_overflow_iter", "_last_rescale_iter", "_overflows_since_rescale")
# what the scaler of --amp has beside its options
AMP_STATE = ("scale", "_growth_tracker")


@patch(
    "fairseq.optim.fp16_optimizer",
    because="fairseq 0.12.2: a training with --fp16 that goes on from a checkpoint counts the "
    "updates of --fp16-scale-window anew: its loss scale grows at other updates, and it skips "
    "others, than without the interruption",
)
def scales_grow_at_the_same_updates(module: PatchedModule) -> None:
    """Store with the loss scale when it has last changed, and when a gradient has overflowed."""

    def restore(self: FP16Optimizer, state_dict: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        if self.scaler is not None:
            for name, count in state_dict.get(COUNTERS, {}).items():
                setattr(self.scaler, name, count)

    for optimizer in (module._FP16OptimizerMixin, module._MemoryEfficientFP16OptimizerMixin):
        _store_counters(optimizer)
        call_after(optimizer, "load_state_dict", restore)


def _store_counters(optimizer: type[FP16Optimizer]) -> None:
    """Let the optimizers of a class add the counters of their scaler to their state."""
    stock = optimizer.state_dict

    @functools.wraps(stock)
    def state_dict(self: FP16Optimizer) -> dict[str, Any]:
        state: dict[str, Any] = stock(self)
        if self.scaler is None:  # --bf16
            return state
        return {**state, COUNTERS: {name: getattr(self.scaler, name) for name in COUNTED}}

    optimizer.state_dict = state_dict


@patch(
    "fairseq.optim.amp_optimizer",
    because="fairseq 0.12.2 with any torch: a training with --amp that goes on from a checkpoint "
    "begins anew with --amp-init-scale, with which small gradients may vanish",
)
def amp_keeps_its_scale(module: PatchedModule) -> None:
    """Store the scale, and for how many updates it has not changed."""
    optimizer = module.AMPOptimizer
    stock = optimizer.state_dict

    @functools.wraps(stock)
    def state_dict(self: AMPOptimizer) -> dict[str, Any]:
        scale = self.scaler.state_dict()  # empty on CPUs, where it scales nothing
        state = stock(self)
        return {**state, AMP_SCALE: {name: scale[name] for name in AMP_STATE}} if scale else state

    def restore(self: AMPOptimizer, state_dict: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        scale = self.scaler.state_dict()
        if scale and AMP_SCALE in state_dict:
            self.scaler.load_state_dict({**scale, **state_dict[AMP_SCALE]})

    optimizer.state_dict = state_dict
    call_after(optimizer, "load_state_dict", restore)
