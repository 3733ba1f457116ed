"""The order in which an epoch walks through the pairs of a dataset."""

import itertools
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Protocol, Sequence, Tuple

import numpy as np

from ..common.hashed_random import key_of
from .dataset import Batch, StreamsDataset
from .schedule import Slot, epoch_length, epoch_slots
from .state import RunState


class Plan(Protocol):
    """The order of the batches of every epoch."""

    def __call__(self, epoch: int, shuffle: bool = ...) -> List[Batch]:
        """Return all batches of the epoch, those of worker r of n at r, r + n, .."""


def random_of(*keys: object) -> np.random.RandomState:
    """Return a source of randomness that depends on the keys alone, on every machine alike."""
    return np.random.RandomState(key_of(*keys))


def _endless(batches: Sequence[Batch], *keys: object, shuffle: bool = True) -> Iterator[Batch]:
    """Yield passes over the batches for ever, each in a new order unless ``shuffle`` is False."""
    for number in itertools.count():
        if not shuffle:
            yield from batches
            continue
        # The number of the pass is a key: the order depends on nothing that was drawn before,
        # neither on other pairs nor on where a resumed run begins.
        for index in random_of(*keys, number).permutation(len(batches)):
            yield batches[index]


class TrainingPlan:
    """The batches of an epoch, as a function of (seed, epoch, pairs that have left) alone.

    Args:
        dataset: the dataset the batches index.
        batches: {pair: minibatches of the pair's own sentence numbers}; with joint, pairs of one
            set of sentences have the same ones, and see the same of them in an update.
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
        self.pairs = list(batches)  # those that the schedule is over
        self.synthetic: List[str] = []  # the streams besides them
        self.schedule, self.seed, self.group = schedule, seed, group
        self.main_pair, self.temperature = main_pair, temperature
        self.join_at, self.state = dict(join_at or {}), state or RunState()

    @property
    def order(self) -> Dict[str, str]:
        """Return {option: value} of what decides which batches the updates of an epoch have."""
        return {
            "--seed": str(self.seed),
            "--schedule": self.schedule,
            "--main-pair": str(self.main_pair),
            "--schedule-temperature": str(float(self.temperature)),
        }

    def _sentence_set(self, pair: str) -> str:
        """Return the name of the sentences that a pair sees: one name for pairs with the same."""
        return self.dataset.sets[pair] if self.schedule == "joint" else pair

    def _batches_per_update(self, epoch: int) -> int:
        """Return the minibatches that a pair has in an update."""
        return self.group(epoch)

    def _lengths(self, epoch: int, pairs: Sequence[str]) -> Dict[str, int]:
        """Return the updates that one pass over each of the pairs takes."""
        group = self._batches_per_update(epoch)
        # rounded up: the last update of a pass begins with what is left of it
        return {pair: -(-len(self.batches[pair]) // group) for pair in pairs}

    def _sizes(self) -> Dict[str, float]:
        """Return the sentences of each pair, without those that are too long for the model."""
        return {pair: sum(map(len, batches)) for pair, batches in self.batches.items()}

    def _late(self, epoch: int, begin: int) -> Dict[str, float]:
        """Return {pair: updates of the epoch before it takes part}."""
        return self.state.late(self.pairs, self.join_at, epoch, begin)

    def _length(self, epoch: int, begin: int) -> int:
        """Return the updates of an epoch that begins after ``begin`` of them."""
        late, lengths = self._late(epoch, begin), self._lengths(epoch, self.pairs)
        return epoch_length(self.schedule, lengths, late, self.main_pair)

    def is_over(self, epoch: int) -> bool:
        """True if all pairs have left by then."""
        return set(self.pairs) <= set(self.state.has_left(epoch))

    def begin(self, epoch: int, begins: Optional[Dict[int, int]] = None) -> int:
        """Return the updates before the epoch; adds to ``begins``, by default the run's."""
        begins = self.state.begins if begins is None else begins
        # Only forward, from the last beginning that is known: a resumed run has that of its epoch
        # from the checkpoint, and cannot compute earlier ones, which may have had other data.
        first = max(number for number in begins if number <= epoch)
        for number in range(first, epoch):
            begins[number + 1] = begins[number] + self._length(number, begins[number])
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
        """Return the pairs of every update of the epoch."""
        return self._slots_of(self.pairs, epoch, self._late(epoch, self.begin(epoch)))

    def _slots_of(
        self,
        pairs: Sequence[str],
        epoch: int,
        late: Mapping[str, float],
        count: Optional[int] = None,
        keys: Tuple[object, ...] = ("slots",),
        weights: Optional[Mapping[str, float]] = None,
    ) -> List[Slot]:
        """Return ``schedule.epoch_slots`` of some pairs; ``keys`` tell draws of a seed apart.

        With ``weights``, {pair: weight}, a slot has one pair, drawn in proportion to them.
        """
        sizes = weights or self._sizes()
        return epoch_slots(
            "temperature" if weights else self.schedule,
            lengths=self._lengths(epoch, pairs),
            sizes={pair: sizes[pair] for pair in pairs},
            random=random_of(self.seed, epoch, *keys),  # apart from the order of minibatches
            main_pair=self.main_pair,
            temperature=1.0 if weights else self.temperature,
            late=late,
            count=count,
        )

    def _parts(self, slot: Slot, epoch: int) -> List[Slot]:
        """Return the pairs of each of an update's batches, in the order of the workers."""
        return [slot] * self.group(epoch)

    def __call__(self, epoch: int, shuffle: bool = True) -> List[Batch]:
        """Return all batches of the epoch; each update's are ``group(epoch)`` neighbours.

        A pass that does not fill its last update goes on into the next pass, so that no worker
        is left without a batch. Without ``shuffle`` (--curriculum) each pass over a pair is in
        the order of its ``batches``, the shortest sentences first. Raises RuntimeError when all
        pairs have left.
        """
        if self.is_over(epoch):
            raise RuntimeError(
                f"epoch {epoch} has no batches: all pairs have left (--pair-patience); a training "
                "loop must end where is_run_over(epoch) of its iterator is true"
            )
        minibatches: Dict[str, Iterator[Batch]] = {}
        for pair in self.batches:
            name = self._sentence_set(pair)
            if name not in minibatches:
                # no key names a worker: all of them get minibatches of a set in turn
                keys = self.seed, epoch, name
                minibatches[name] = _endless(self.batches[pair], *keys, shuffle=shuffle)
        planned: List[Batch] = []
        self.begin(epoch + 1)  # while this epoch's data are there: the next may have others
        for slot in self.slots(epoch):
            for part in self._parts(slot, epoch):
                # once per minibatch, so that both directions of a set see the same sentences
                drawn: Dict[str, Batch] = {}
                batch: Batch = []
                for pair in part:
                    name = self._sentence_set(pair)
                    if name not in drawn:
                        drawn[name] = next(minibatches[name])
                    batch += self.dataset.to_global(pair, drawn[name])
                planned.append(batch)
        return planned


class ValidationPlan:
    """Every batch of every pair once, the pairs in turn, all workers on the same pair.

    --max-valid-steps N ends a validation after N batches of a worker: they are of all pairs, as
    many of each as possible.
    """

    def __init__(self, dataset: StreamsDataset, batches: Dict[str, List[Batch]], shards: int):
        rounds: List[List[List[Batch]]] = []  # of each pair; a round has a batch for each worker
        for pair, pair_batches in batches.items():
            # worker r has batches r, r + n, ..: every pair fills its last round, so that no worker
            # is at the next pair while others are still at this one
            filled = [dataset.to_global(pair, batch) for batch in pair_batches]
            # empty batches for the workers that the last ones leave without
            filled += [[]] * (-len(pair_batches) % shards)
            rounds.append([filled[i : i + shards] for i in range(0, len(filled), shards)])
        nothing: List[Batch] = []  # of a pair that has no more rounds
        turns = itertools.zip_longest(*rounds, fillvalue=nothing)
        self.planned = [batch for turn in turns for part in turn for batch in part]

    def __call__(self, epoch: int, shuffle: bool = False) -> List[Batch]:
        """Return all batches, in every epoch the same."""
        return self.planned
