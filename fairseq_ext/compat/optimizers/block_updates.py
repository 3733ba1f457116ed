"""Training with --use-bmuf: averages of the workers after blocks of updates, with momentum."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after
from .optimizer_states import BLOCKS

if TYPE_CHECKING:
    from fairseq.optim.bmuf import FairseqBMUF
    from fairseq.trainer import Trainer
    from torch import Tensor

logger = logging.getLogger(__name__)


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: --use-bmuf counts the workers before a launcher names them: on CPUs "
    "with torchrun the workers' models are never averaged. With one worker it does nothing, and "
    "nothing says so",
)
def block_updates_count_the_workers(module: PatchedModule) -> None:
    """Average over the workers that the training has; warn where there is one."""

    def count_workers(self: Trainer) -> None:
        if not self.cfg.optimization.use_bmuf:
            return
        self._optimizer.world_size = self.data_parallel_world_size
        if self.data_parallel_world_size == 1:
            logger.warning("--use-bmuf does nothing with one worker, whose model is the average")

    call_after(module.Trainer, "_build_optimizer", count_workers)


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: a training with --use-bmuf that goes on begins its warm-up again, "
    "without any exchange, and throws away what all workers but the first learn in it",
)
def block_updates_are_counted_on(module: PatchedModule) -> None:
    """Tell the optimizer the number of updates of the checkpoint."""

    def tell_updates(self: Trainer, num_updates: int) -> None:
        if self.cfg.optimization.use_bmuf and self._optimizer is not None:
            self._optimizer.set_num_updates(num_updates)

    call_after(module.Trainer, "set_num_updates", tell_updates)


@patch(
    "fairseq.optim.bmuf",
    because="fairseq 0.12.2: checkpoints of --use-bmuf lack the block momentum, so that a training "
    "that goes on begins with none and is another one, without a word",
)
def block_momentum_is_saved(module: PatchedModule) -> None:
    """Store the momentum and the parameters of the last average, which all workers share.

    A checkpoint has the model of the first worker alone: within a block of updates, what the others
    have learnt since the last average is lost, as in stock.
    """
    optimizer = module.FairseqBMUF
    stock_state, stock_load = optimizer.state_dict, optimizer.load_state_dict

    @functools.wraps(stock_state)
    def state_dict(self: FairseqBMUF) -> dict[str, Any]:
        state: dict[str, Any] = stock_state(self)
        if not has_momentum(self):
            return state
        return {**state, BLOCKS: {name: list(getattr(self, name)) for name in MOMENTUM}}

    @functools.wraps(stock_load)
    def load_state_dict(
        self: FairseqBMUF, state_dict: dict[str, Any], optimizer_overrides: Any = None
    ) -> None:
        state = dict(state_dict)
        stored = state.pop(BLOCKS, None)
        stock_load(self, state, optimizer_overrides)
        if has_momentum(self):
            restore_momentum(self, stored)

    optimizer.state_dict, optimizer.load_state_dict = state_dict, load_state_dict


@patch(
    "fairseq.optim.bmuf",
    because="fairseq 0.12.2: --use-bmuf with --fp16 or --bf16 averages the parameters in single "
    "precision alone: the model has those of its worker for one more update, in validation and in "
    "checkpoints, too",
)
def averages_reach_the_model(module: PatchedModule) -> None:
    """Copy the parameters in single precision to those of the model after each average."""
    optimizer = module.FairseqBMUF

    def copy_to_model(self: FairseqBMUF, closure: Any = None) -> None:
        is_average = self._is_warmup_end() or self._is_bmuf_iter()
        copy_parameters = getattr(self._optimizer, "_sync_fp32_params_to_fp16", None)
        if is_average and copy_parameters is not None:
            copy_parameters()

    call_after(optimizer, "step", copy_to_model)


@patch(
    "fairseq.optim.bmuf",
    because="fairseq 0.12.2: --use-bmuf with --fp16 or --bf16 leaves the parameters as they are: "
    "the gradients do not reach those in single precision",
)
def gradients_reach_the_optimizer(module: PatchedModule) -> None:
    """Let the optimizer in single precision scale the loss and note the gradients."""

    def backward(self: FairseqBMUF, loss: Tensor) -> None:
        self._optimizer.backward(loss)

    module.FairseqBMUF.backward = backward


# attributes of fairseq's optimizer: lists of tensors, one for each parameter
MOMENTUM = ("global_params", "smoothed_grads")


def has_momentum(optimizer: FairseqBMUF) -> bool:
    """True if the optimizer adds a momentum to the averages of several workers."""
    return bool(optimizer.world_size > 1 and optimizer.block_momentum != 0)


def restore_momentum(optimizer: FairseqBMUF, stored: dict[str, list[Tensor]] | None) -> None:
    """Take over what a checkpoint stored; warn where it has nothing for these parameters."""
    shapes = [value.shape for value in optimizer.global_params]
    if stored is None or any([v.shape for v in stored[name]] != shapes for name in MOMENTUM):
        logger.warning("--use-bmuf: the checkpoint has no block momentum, which begins at zero")
        return
    for name in MOMENTUM:
        for value, saved in zip(getattr(optimizer, name), stored[name]):
            value.copy_(saved)
