"""What fairseq's training loop asks of a run's objects, if they offer it.

The protocols below are all that a task or an iterator needs in order to be asked; nothing is
registered.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from .patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.tasks import FairseqTask
    from fairseq.trainer import Trainer

# validation losses of the last validation (None: there was none), and whether the run ends
EpochResult = tuple["list[float | None]", bool]


@runtime_checkable
class KnowsEndOfRun(Protocol):
    """An epoch iterator that can say that there is nothing left to train."""

    @property
    def next_epoch_idx(self) -> int:
        """Return the number of the epoch that comes next; fairseq's iterators have it."""

    def is_run_over(self, epoch: int) -> bool:
        """True if nothing is trained in ``epoch``, nor in a later one."""


def _is_over(epoch_itr: Any) -> bool:
    """True if the iterator says so of the epoch that comes next."""
    return isinstance(epoch_itr, KnowsEndOfRun) and epoch_itr.is_run_over(epoch_itr.next_epoch_idx)


@patch(
    "fairseq_cli.train",
    because="fairseq 0.12.2: a training ends by options, learning rate or --patience alone, and "
    "fails on an epoch without batches",
)
def iterators_may_end_the_run(module: PatchedModule) -> None:
    """End the run after an epoch, or at once when resumed, if its iterator says that it is over."""
    train = module.train

    @functools.wraps(train)
    def train_unless_over(
        cfg: FairseqConfig, trainer: Trainer, task: FairseqTask, epoch_itr: Any
    ) -> EpochResult:
        if _is_over(epoch_itr):
            return [None], True
        valid_losses, should_stop = train(cfg, trainer, task, epoch_itr)
        return valid_losses, should_stop or _is_over(epoch_itr)

    module.train = train_unless_over
