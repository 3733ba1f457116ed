"""A dataset of parallel datasets, and the order in which an epoch walks through them."""

import itertools
import zlib
from collections import OrderedDict
from typing import Callable, Dict, Iterator, List, Optional, Sequence

import numpy as np
from fairseq.data import FairseqDataset
from fairseq.data.iterators import EpochBatchIterator, ShardedIterator

from .schedule import Slot, epoch_slots

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
    """The batches of an epoch, as a function of (seed, epoch) alone.

    Args:
        dataset: the dataset the batches index.
        batches: {pair: minibatches of the pair's own sentence numbers}.
        schedule, main_pair, temperature: see ``schedule.epoch_slots``.
        seed: of the run.
        group: epoch -> minibatches per update (workers x accumulated batches).
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
    ):
        self.dataset, self.batches = dataset, batches
        self.schedule, self.seed, self.group = schedule, seed, group
        self.main_pair, self.temperature = main_pair, temperature

    def _stream(self, pair: str) -> str:
        """Directions that see the same sentences in an update draw from one stream."""
        if self.schedule != "joint":
            return pair
        source, _, target = pair.partition("-")
        reverse = f"{target}-{source}"
        return min(pair, reverse) if reverse in self.batches else pair

    def slots(self, epoch: int) -> List[Slot]:
        group = self.group(epoch)
        return epoch_slots(
            self.schedule,
            lengths={
                pair: -(-len(self.batches[self._stream(pair)]) // group) for pair in self.batches
            },
            sizes={pair: len(self.dataset.datasets[pair]) for pair in self.batches},
            random=_random(self.seed, epoch, "slots"),
            main_pair=self.main_pair,
            temperature=self.temperature,
        )

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
        for slot in self.slots(epoch):
            for _ in range(self.group(epoch)):
                drawn: Dict[str, Batch] = {}
                batch: Batch = []
                for pair in slot:
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
