"""What fairseq's training loop asks of a run's objects, if they offer it.

The protocols below are all that a task or an iterator needs in order to be asked; nothing is
registered.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before
from .after_loading import CheckpointLoading, after_loading

if TYPE_CHECKING:
    import torch
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.optim import FairseqOptimizer
    from fairseq.tasks import FairseqTask
    from fairseq.trainer import Trainer
    from torch import Tensor, nn

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
        """Train an epoch unless the iterator says that the run is over, before it or after it."""
        if _is_over(epoch_itr):
            return [None], True
        valid_losses, should_stop = train(cfg, trainer, task, epoch_itr)
        return valid_losses, should_stop or _is_over(epoch_itr)

    module.train = train_unless_over


@runtime_checkable
class RemembersRun(Protocol):
    """A task whose batches depend on what has happened in the run so far."""

    def go_on_from(self, loading: CheckpointLoading, updates: int, reset_dataloader: bool) -> None:
        """A training begins with a checkpoint; the iterator of its batches is built afterwards.

        Args:
            loading: what was read. Its ``extra_state`` holds the position in the data.
            updates: those that the run has done.
            reset_dataloader: True if the iterator begins with epoch 1, whatever the position.
        """


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: what a task remembers of a run is stored with the position in the "
    "data, and --reset-dataloader leaves both out",
)
def tasks_go_on_from_checkpoints(module: PatchedModule) -> None:
    """Tell the task that a training begins with a checkpoint."""

    def tell(trainer: Trainer, loading: CheckpointLoading) -> None:
        if loading.extra_state is not None and isinstance(trainer.task, RemembersRun):
            checkpoint = trainer.cfg.checkpoint
            is_another = loading.filename == checkpoint.finetune_from_model
            is_another &= loading.reset_optimizer  # else it goes on from that file
            reset_dataloader = checkpoint.reset_dataloader or is_another
            trainer.task.go_on_from(loading, trainer.get_num_updates(), reset_dataloader)

    after_loading(module.Trainer, tell)


@runtime_checkable
class SeesUpdates(Protocol):
    """A task whose loss depends on all batches of an update, those of --update-freq and workers."""

    def begin_update(self, samples: list[Any], device: torch.device) -> None:
        """An update begins; called on every worker.

        Args:
            samples: this worker's batches, in their order, before they are moved to ``device``.
                The task may add to them.
            device: of the trainer.
        """


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: a task is given the batches of an update one after the other, and "
    "knows the size of the whole only when all gradients are there",
)
def tasks_see_whole_updates(module: PatchedModule) -> None:
    """Show the task all batches of an update before the first of them is trained."""

    def show(trainer: Trainer, samples: list[Any], *args: Any, **kwargs: Any) -> None:
        if isinstance(trainer.task, SeesUpdates):
            trainer.task.begin_update(samples, trainer.device)

    call_before(module.Trainer, "train_step", show)


class Reducer(Protocol):
    """What the trainer calls, on every worker, in the place of data-parallel training's own."""

    def reduce_gradients(self) -> None:
        """Put the workers' gradients together, once in an update, after all backward passes."""

    def clip_grad_norm(self, max_norm: float) -> Tensor:
        """Clip the gradients (0: do not) and return the norm, the same on all workers."""
        ...

    def complete(self) -> None:
        """Give worker 0 whatever it lacks of parameters and states: a checkpoint is written."""


@runtime_checkable
class ReducesGradients(Protocol):
    """A task whose workers put gradients together in a way of their own."""

    @property
    def reduces_gradients(self) -> bool:
        """True if the workers of this run do."""

    def reducer_of(self, optimizer: FairseqOptimizer) -> Reducer | None:
        """Return what acts on the optimiser's parameters; None: nothing to exchange as yet."""


def _reduces_gradients(trainer: Trainer) -> bool:
    """True if the trainer's task says so."""
    return isinstance(trainer.task, ReducesGradients) and trainer.task.reduces_gradients


def _reducer(trainer: Trainer) -> Reducer | None:
    """Return the reducer that the trainer's task offers for the trainer's optimiser."""
    return trainer.task.reducer_of(trainer.optimizer) if _reduces_gradients(trainer) else None


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: --ddp-backend alone decides how workers exchange gradients, and all "
    "of them exchange all gradients",
)
def tasks_may_reduce_gradients(module: PatchedModule) -> None:
    """Call the task's reducer to put gradients together, to clip, and before a checkpoint."""
    trainer = module.Trainer
    wrapped_model = trainer.model
    clip, consolidate = trainer.clip_grad_norm, trainer.consolidate_optimizer

    def model(self: Trainer) -> nn.Module:
        """Return the trainer's model, with the task's reducer around its data-parallel wrapper."""
        # fairseq's property builds the wrapper when it is asked first, and keeps it
        is_first = self._wrapped_model is None
        if is_first and self.use_distributed_wrapper and _reduces_gradients(self):
            from .reduced_model import ReducedModel

            # set after the getter has set it to what is inside
            self._wrapped_model = ReducedModel(wrapped_model.fget(self), lambda: _reduce(self))
        return wrapped_model.fget(self)

    @functools.wraps(clip)
    def clip_grad_norm(self: Trainer, clip_norm: float) -> Tensor:
        reducer = _reducer(self)
        return clip(self, clip_norm) if reducer is None else reducer.clip_grad_norm(clip_norm)

    @functools.wraps(consolidate)
    def consolidate_optimizer(self: Trainer) -> None:
        """Complete worker 0's state; the trainer calls it on all workers before a checkpoint."""
        reducer = _reducer(self)
        if reducer is not None:
            reducer.complete()
        consolidate(self)

    trainer.model = property(model)
    trainer.clip_grad_norm, trainer.consolidate_optimizer = clip_grad_norm, consolidate_optimizer


def _reduce(trainer: Trainer) -> None:
    """Let the reducer put the gradients together; before the first update there is none."""
    reducer = _reducer(trainer)
    if reducer is not None:
        reducer.reduce_gradients()
