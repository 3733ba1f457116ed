"""A dataset of parallel datasets, and the order in which an epoch walks through them."""

import itertools
import math
import zlib
from collections import OrderedDict
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Sequence

import numpy as np
from fairseq.data import FairseqDataset
from fairseq.data.iterators import EpochBatchIterator, ShardedIterator

from .schedule import Slot, epoch_length, epoch_slots
from .state import RunState

Batch = List[int]


class StreamsDataset(FairseqDataset):
    """The sentence pairs of several lang pairs, numbered one pair after the other.

    A minibatch is a dict {pair: sample}; every sample is the pair dataset's own, with the pair's
    name added to its ``net_input``, so that the model's forward is told it.

    Args:
        datasets: {pair: LanguagePairDataset or the like}.
    """

    def __init__(self, datasets: Dict[str, FairseqDataset]):
        super().__init__()
        self.datasets = OrderedDict(datasets)
        lengths = [len(dataset) for dataset in self.datasets.values()]
        ends = np.cumsum(lengths)
        self.pairs = list(self.datasets)
        self.starts = dict(zip(self.pairs, (ends - lengths).tolist()))
        self._ends = ends

    def __len__(self):
        return int(self._ends[-1])

    def _find(self, index: int):
        which = int(np.searchsorted(self._ends, index, side="right"))
        pair = self.pairs[which]
        return pair, int(index) - self.starts[pair]

    def __getitem__(self, index: int):
        pair, local = self._find(index)
        return pair, self.datasets[pair][local]

    def collater(self, samples):
        """[(pair, item)] -> {pair: sample}; no items -> {}, which fairseq takes for no batch."""
        items: Dict[str, list] = OrderedDict()
        for pair, item in samples:
            items.setdefault(pair, []).append(item)
        batch = {}
        for pair, members in items.items():
            batch[pair] = self.datasets[pair].collater(members)
            batch[pair]["net_input"]["pair"] = pair
        return batch

    def num_tokens(self, index: int) -> int:
        pair, local = self._find(index)
        return self.datasets[pair].num_tokens(local)

    def size(self, index: int):
        pair, local = self._find(index)
        return self.datasets[pair].size(local)

    @property
    def supports_prefetch(self):
        return False

    @property
    def can_reuse_epoch_itr_across_epochs(self):
        return True

    def set_epoch(self, epoch):
        for dataset in self.datasets.values():
            dataset.set_epoch(epoch)

    def to_global(self, pair: str, indices: Sequence[int]) -> Batch:
        """A pair's own sentence numbers -> numbers in this dataset."""
        start = self.starts[pair]
        return [start + int(index) for index in indices]


def _random(*keys) -> np.random.RandomState:
    """A source of randomness that depends on the keys alone, on every machine alike."""
    return np.random.RandomState(zlib.crc32(repr(keys).encode()))


def _endless(batches: Sequence[Batch], *keys) -> Iterator[Batch]:
    """Passes over the batches for ever, each in a new order."""
    for number in itertools.count():
        for index in _random(*keys, number).permutation(len(batches)):
            yield batches[index]


class TrainingPlan:
    """The batches of an epoch, as a function of (seed, epoch, pairs that have left) alone.

    Args:
        dataset: the dataset the batches index.
        batches: {pair: minibatches of the pair's own sentence numbers}.
        schedule, main_pair, temperature: see ``schedule.epoch_slots``.
        seed: of the run.
        group: epoch -> minibatches per update (workers x accumulated batches).
        join_at: {pair: updates of the run before it takes part}.
        state: which pairs have left, and when epochs begin.
    """

    def __init__(
        self,
        dataset: StreamsDataset,
        batches: Dict[str, List[Batch]],
        schedule: str,
        seed: int,
        group: Callable[[int], int],
        main_pair: Optional[str] = None,
        temperature: float = 1.0,
        join_at: Optional[Mapping[str, int]] = None,
        state: Optional[RunState] = None,
    ):
        self.dataset, self.batches = dataset, batches
        self.schedule, self.seed, self.group = schedule, seed, group
        self.main_pair, self.temperature = main_pair, temperature
        self.join_at, self.state = dict(join_at or {}), state or RunState()

    def _stream(self, pair: str) -> str:
        """Directions that see the same sentences in an update draw from one stream."""
        if self.schedule != "joint":
            return pair
        source, _, target = pair.partition("-")
        reverse = f"{target}-{source}"
        return min(pair, reverse) if reverse in self.batches else pair

    def _lengths(self, epoch: int) -> Dict[str, int]:
        """Updates that one pass over each pair takes."""
        group = self.group(epoch)
        return {pair: -(-len(self.batches[self._stream(pair)]) // group) for pair in self.batches}

    def _late(self, epoch: int, begin: int) -> Dict[str, float]:
        """{pair: updates of the epoch before it takes part}.

        Where only pairs are left that are still to join, the first of them joins at once:
        otherwise the run would stand still.
        """
        late: Dict[str, float] = {
            pair: max(0, number - begin) for pair, number in self.join_at.items()
        }
        late.update(dict.fromkeys(self.state.has_left(epoch), math.inf))
        soonest = min(late.get(pair, 0) for pair in self.batches)
        if 0 < soonest < math.inf:
            late.update({pair: 0 for pair, wait in late.items() if wait == soonest})
        return late

    def _length(self, epoch: int, begin: int) -> int:
        """Updates of an epoch that begins after ``begin`` of them."""
        late = self._late(epoch, begin)
        pairs = [pair for pair in self.batches if late.get(pair, 0) <= 0]
        return epoch_length(self.schedule, self._lengths(epoch), pairs, self.main_pair)

    def is_over(self, epoch: int) -> bool:
        """Whether all pairs have left by then."""
        return set(self.batches) <= set(self.state.has_left(epoch))

    def begin(self, epoch: int, begins: Optional[Dict[int, int]] = None) -> int:
        """Updates before the epoch; ``begins`` are those known, by default the run's."""
        begins = self.state.begins if begins is None else begins
        known = max(number for number in begins if number <= epoch)
        while known < epoch:
            begins[known + 1] = begins[known] + self._length(known, begins[known])
            known += 1
        return begins[epoch]

    def check_joins(self, max_update: int, max_epoch: int) -> None:
        """Raise ValueError when a pair would join when the run is over; 0 = no such limit."""
        planned = dict(self.state.begins)  # pairs may leave: what is to come is not remembered
        for pair, number in self.join_at.items():
            if max_update and number >= max_update:
                raise ValueError(
                    f"--join-at {pair}={number}: the run ends after --max-update {max_update}; "
                    "must be less"
                )
            if max_epoch and number >= self.begin(max_epoch + 1, planned):
                raise ValueError(
                    f"--join-at {pair}={number}: the run ends after --max-epoch {max_epoch}, which "
                    f"is {planned[max_epoch + 1]} updates; must be less"
                )

    def slots(self, epoch: int) -> List[Slot]:
        return epoch_slots(
            self.schedule,
            lengths=self._lengths(epoch),
            sizes={pair: len(self.dataset.datasets[pair]) for pair in self.batches},
            random=_random(self.seed, epoch, "slots"),
            main_pair=self.main_pair,
            temperature=self.temperature,
            late=self._late(epoch, self.begin(epoch)),
        )

    def _parts(self, slot: Slot, epoch: int) -> List[Slot]:
        """The pairs of each of an update's batches, in the order in which workers take them."""
        return [slot] * self.group(epoch)

    def __call__(self, epoch: int) -> List[Batch]:
        """All batches of the epoch; each update's are ``group(epoch)`` neighbours.

        A pass that does not fill its last update goes on into the next pass, so that no worker
        is left without a batch.
        """
        streams = {}
        for pair in self.batches:
            name = self._stream(pair)
            if name not in streams:
                streams[name] = _endless(self.batches[name], self.seed, epoch, name)
        planned = []
        self.begin(epoch + 1)  # while this epoch's data are there: the next may have other data
        for slot in self.slots(epoch):
            for part in self._parts(slot, epoch):
                drawn: Dict[str, Batch] = {}
                batch: Batch = []
                for pair in part:
                    name = self._stream(pair)
                    if name not in drawn:
                        drawn[name] = next(streams[name])
                    batch += self.dataset.to_global(pair, drawn[name])
                planned.append(batch)
        return planned


class ValidationPlan:
    """Every batch of every pair once, pair after pair, all workers on the same pair."""

    def __init__(self, dataset: StreamsDataset, batches: Dict[str, List[Batch]], shards: int):
        self.planned: List[Batch] = []
        for pair, found in batches.items():
            self.planned += [dataset.to_global(pair, batch) for batch in found]
            self.planned += [[]] * (-len(found) % shards)

    def __call__(self, epoch: int) -> List[Batch]:
        return self.planned


class StreamsIterator(EpochBatchIterator):
    """fairseq's epoch iterator over a plan: the plan, not a shuffle, decides the order.

    Its state holds that of a ``TrainingPlan`` as well.

    (fairseq 0.12.2 also takes a function as ``batch_sampler``, but calls it in the first epoch
    only: it overwrites the attribute that holds it.)
    """

    def __init__(self, dataset, plan: Callable[[int], List[Batch]], **options):
        self._plan = plan
        self._planned_epoch = None
        super().__init__(
            dataset,
            dataset.collater,
            batch_sampler=lambda _dataset, epoch: plan(epoch),
            disable_shuffling=True,
            **options,
        )

    @property
    def frozen_batches(self):
        if self._planned_epoch != self.epoch:
            self._planned = self._plan(self.epoch)
            self._planned_epoch = self.epoch
        return self._planned

    def ordered_batches(self, epoch, fix_batches_to_gpus, shuffle):
        batches = self.frozen_batches if epoch == self.epoch else self._plan(epoch)
        return list(ShardedIterator(batches, self.num_shards, self.shard_id, fill_value=[]))

    @property
    def first_batch(self):
        """A batch of this worker's own: the trainer runs it where the worker has none."""
        own = self.frozen_batches[self.shard_id :: self.num_shards]
        batch = next(batch for batch in (*own, *self.frozen_batches) if batch)
        return self.collate_fn([self.dataset[index] for index in batch])

    @property
    def next_epoch_idx(self):
        """The number of the next epoch; not a number (nan) when no pair is left for it.

        fairseq-train goes on while this is at most --max-epoch, or infinity without one: nothing
        but nan ends it there. It cannot run an epoch without batches.
        """
        number = super().next_epoch_idx
        over = isinstance(self._plan, TrainingPlan) and self._plan.is_over(number)
        return math.nan if over else number

    def state_dict(self):
        found = super().state_dict()
        if not isinstance(self._plan, TrainingPlan):
            return found
        begin = self._plan.begin(found["epoch"])
        streams = {**self._plan.state.state_dict(), "begins": {1: 0, found["epoch"]: begin}}
        return {**found, "streams": streams}

    def load_state_dict(self, state_dict):
        if isinstance(self._plan, TrainingPlan) and "streams" in state_dict:
            self._plan.state.load_state_dict(state_dict["streams"])
            self._planned_epoch = None
        super().load_state_dict(state_dict)
