"""The order of batches where each worker trains pairs of its own (--pair-parallel)."""

from typing import Any, Dict, List, Sequence

from .plan import TrainingPlan
from .schedule import Slot, epoch_length


class PairParallelPlan(TrainingPlan):
    """The batches of an epoch where each worker trains pairs of its own.

    Each worker has the schedule over its own pairs; a slot holds one slot for each worker. The
    epoch ends when the worker with the most to do has done it. A worker whose pairs take no part
    has empty batches.

    Args:
        assignment: the pairs of each worker.
        options: those of ``TrainingPlan``.
    """

    def __init__(self, assignment: Sequence[Sequence[str]], *options: Any, **named: Any):
        super().__init__(*options, **named)
        self.assignment = [list(pairs) for pairs in assignment]

    @property
    def order(self) -> Dict[str, str]:
        """Return that of a plain run, and the pairs of each worker."""
        return {**super().order, "--pair-parallel": str(self.assignment)}

    def _batches_per_update(self, epoch: int) -> int:
        """Return the minibatches that a pair, and so its one worker, has in an update."""
        # an update has as many minibatches as in a plain run, each of them of its worker's pair
        return self.group(epoch) // len(self.assignment)

    def _length(self, epoch: int, begin: int) -> int:
        """Return the updates of an epoch: those of the worker with the most to do."""
        late = self._late(epoch, begin)
        lengths = [self._lengths(epoch, pairs) for pairs in self.assignment]
        return max(epoch_length(self.schedule, of_worker, late) for of_worker in lengths)

    def slots(self, epoch: int) -> List[Any]:
        """Return the slots of every update of the epoch, one for each worker."""
        begin = self.begin(epoch)
        late, count = self._late(epoch, begin), self._length(epoch, begin)
        # Every worker plans the epoch for all of them: fairseq cuts
        # the list of batches only afterwards.
        by_worker = [
            self._slots_of(pairs, epoch, late, count, ("slots", worker))
            for worker, pairs in enumerate(self.assignment)
        ]
        return list(zip(*by_worker))  # all have ``count`` slots

    def _parts(self, slot: Any, epoch: int) -> List[Slot]:
        """Return the pairs of each of an update's batches, in the order of the workers."""
        # batches number r, r + n, .. are those of worker r of n, as
        # fairseq's ShardedIterator cuts them
        return list(slot) * self._batches_per_update(epoch)
