"""fairseq's iterator over the batches of an epoch, in the order of a plan."""

import logging
from typing import Any, Dict, List, Mapping, Optional, Tuple

from fairseq.data.iterators import EpochBatchIterator, ShardedIterator

from ..compat.training.epoch_positions import BATCHES
from .dataset import Batch, Sample, StreamsDataset
from .plan import Plan, TrainingPlan

logger = logging.getLogger(__name__)


class StreamsIterator(EpochBatchIterator):
    """fairseq's epoch iterator over a plan: the plan, not a shuffle, decides the order.

    Its state holds that of a ``TrainingPlan`` as well.

    (fairseq 0.12.2 also takes a function as ``batch_sampler``, but calls it in the first epoch
    only: it overwrites the attribute that holds it.)
    """

    def __init__(self, dataset: StreamsDataset, plan: Plan, **options: Any):
        self._plan = plan
        self._planned: List[Batch] = []
        self._planned_epoch: Optional[int] = None
        super().__init__(
            dataset,
            dataset.collater,
            # never asked: see ``frozen_batches``
            batch_sampler=lambda _dataset, epoch: plan(epoch),
            **options,
        )

    @property
    def frozen_batches(self) -> List[Batch]:
        """Return the batches of all workers in the present epoch."""
        # fairseq asks for them several times in an epoch: for its length, first batch and batches
        if self._planned_epoch != self.epoch:
            self._planned = self._plan(self.epoch)
            self._planned_epoch = self.epoch
        return self._planned

    def ordered_batches(self, epoch: int, fix_batches_to_gpus: bool, shuffle: bool) -> List[Batch]:
        """Return this worker's batches of an epoch."""
        if shuffle and epoch == self.epoch:
            batches = self.frozen_batches
        else:
            # another epoch, or in order (--curriculum):
            # ``frozen_batches`` has the shuffled present one
            batches = self._plan(epoch, shuffle)
        # fix_batches_to_gpus has no meaning here: the plan says which worker has which batch
        return list(ShardedIterator(batches, self.num_shards, self.shard_id, fill_value=[]))

    @property
    def first_batch(self) -> Dict[str, Sample]:
        """Return a batch of this worker's own: the trainer runs it where the worker has none."""
        batches = self.frozen_batches[self.shard_id :: self.num_shards]
        # with --pair-parallel a worker may have empty batches alone: then any worker's does
        batch = next(batch for batch in (*batches, *self.frozen_batches) if batch)
        return self.collate_fn([self.dataset[index] for index in batch])

    def is_run_over(self, epoch: int) -> bool:
        """True if no pair takes part in ``epoch``: compat.training ends the run then."""
        return isinstance(self._plan, TrainingPlan) and self._plan.is_over(epoch)

    def state_dict(self) -> Dict[str, Any]:
        """Return what a checkpoint holds: the position and, under "streams", the run's history."""
        position = super().state_dict()
        if not isinstance(self._plan, TrainingPlan):
            return position
        # of all epochs' beginnings a resumed run needs the last, from which it counts on
        begins = {1: 0, position["epoch"]: self._plan.begin(position["epoch"])}
        streams: Dict[str, Any] = {**self._plan.state.state_dict(), "begins": begins}
        streams["in_order"] = not self.shuffle
        streams["synthetic"] = list(self._plan.synthetic)
        if position["iterations_in_epoch"]:
            group, length = self._group(self._plan)
            updates = position["iterations_in_epoch"] * self.num_shards // group
            of_run = self._plan.begin(self.epoch + 1) - (length - updates)
            streams["position"] = dict(group=group, length=length, updates=updates, of_run=of_run)
            streams["order"] = self._plan.order
        return {**position, "streams": streams}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a position; the plan's state becomes that of the checkpoint."""
        if isinstance(self._plan, TrainingPlan) and "streams" in state_dict:
            streams = state_dict["streams"]
            self._plan.state.load_state_dict(streams)
            begin = self._plan.begin(state_dict["epoch"])
            updates = streams.get("position", {"of_run": begin})["of_run"]
            self._plan.state.note_added(streams, self._plan.synthetic, updates)
            self._planned_epoch = None  # it was planned without this history
            # checkpoints from before --curriculum say "shuffle": False of a shuffled epoch
            state_dict = {**state_dict, "shuffle": not streams.get("in_order", False)}
            self.epoch = state_dict["epoch"]
            if "order" in streams:  # not in checkpoints from before it
                self._warn_of_another_order(self._plan.order, streams["order"])
            if "position" in streams:  # nor is this in older ones
                updates, group = self._go_on_from(self._plan, **streams["position"])
                state_dict["iterations_in_epoch"] = updates * group // self.num_shards
                # of these the position is now
                state_dict["num_shards"] = self.num_shards
                state_dict[BATCHES] = len(self.frozen_batches)
        super().load_state_dict(state_dict)

    def _warn_of_another_order(self, order: Mapping[str, str], stored: Mapping[str, str]) -> None:
        """Warn where the epoch began in another order than that in which it goes on."""
        options = sorted({*order, *stored})
        changed = [option for option in options if order.get(option) != stored.get(option)]
        if changed:
            logger.warning(
                f"epoch {self.epoch} began with another {', '.join(changed)}, which decides the "
                "order of the batches: until it ends some come twice and others not at all"
            )

    def _group(self, plan: TrainingPlan) -> Tuple[int, int]:
        """Return the minibatches of an update and the updates of the present epoch."""
        group = plan.group(self.epoch)
        return group, len(self.frozen_batches) // group

    def _go_on_from(
        self, plan: TrainingPlan, group: int, length: int, updates: int, of_run: int
    ) -> Tuple[int, int]:
        """Return the updates of the present epoch that are done, and the minibatches of each.

        Where --update-freq, the number of workers or the number of minibatches has changed, as
        large a part of the epoch is done as was before, in whole updates: what lies between would
        be updates with minibatches of two neighbours in the plan, and so of other pairs.

        Args:
            group, length, updates: minibatches of an update, updates of the epoch and those done
                when the state was stored.
            of_run: all updates of the run, which --join-at counts.
        """
        new_group, new_length = self._group(plan)
        # streams that are added now come behind the updates that are done
        is_longer = new_group == group and of_run in plan.state.added_at.values()
        if (new_group, new_length) != (group, length) and not is_longer:
            before, updates = updates, updates * new_length // length
            logger.info(
                f"epoch {self.epoch}: {before} of {length} updates are done; its updates are "
                f"others than before, and it goes on after {updates} of {new_length}"
            )
        plan.state.begins[self.epoch + 1] = of_run + new_length - updates
        return updates, new_group
