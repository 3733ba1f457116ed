"""A dataset of parallel datasets."""

from collections import OrderedDict
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
from fairseq.data import FairseqDataset

from .language_pair import pair_of

# sentence numbers of a minibatch; what a dataset's collater makes of it
Batch = List[int]
Sample = Dict[str, Any]


class StreamsDataset(FairseqDataset):
    """The sentence pairs of several lang pairs, numbered one pair after the other.

    A minibatch is a dict {pair: sample}; every sample is the pair dataset's own, with the pair's
    name added to its ``net_input``, so that the model's forward is told it.

    Args:
        datasets: {pair: LanguagePairDataset or the like}.
        sets: {pair: name of its set of sentences}; pairs with the same name have the same
            sentence pairs in the same order. Default: each has its own.
    """

    def __init__(
        self, datasets: Mapping[str, FairseqDataset], sets: Optional[Mapping[str, str]] = None
    ):
        super().__init__()
        self.datasets = OrderedDict(datasets)
        self.sets = dict(sets or {pair: pair for pair in self.datasets})
        lengths = [len(dataset) for dataset in self.datasets.values()]
        # pair i has the numbers from ends[i] - lengths[i] up to, and without, ends[i]
        ends = np.cumsum(lengths)
        self.pairs = list(self.datasets)
        self.starts = dict(zip(self.pairs, (ends - lengths).tolist()))
        self._ends = ends

    def __len__(self) -> int:
        return int(self._ends[-1])

    def _pair_and_number(self, index: int) -> Tuple[str, int]:
        """Return the pair of a sentence and its number among the pair's sentences."""
        # side="right": the first sentence of a pair has the number at which the pair before it ends
        pair = self.pairs[int(np.searchsorted(self._ends, index, side="right"))]
        return pair, int(index) - self.starts[pair]

    def __getitem__(self, index: int) -> Tuple[str, Sample]:
        pair, number = self._pair_and_number(index)
        return pair, self.datasets[pair][number]

    def collater(self, samples: Sequence[Tuple[str, Sample]]) -> Dict[str, Sample]:
        """Return {pair: sample} of [(pair, item)]; of none {}, which fairseq takes for no batch."""
        items: Dict[str, List[Sample]] = OrderedDict()
        # a batch of joint or main+aux is one list, pair after pair
        for pair, item in samples:
            items.setdefault(pair, []).append(item)
        batch: Dict[str, Sample] = {}
        for pair, members in items.items():
            batch[pair] = self.datasets[pair].collater(members)
            # a criterion calls model(**net_input), and a model knows directions
            batch[pair]["net_input"]["pair"] = pair_of(pair)
        return batch

    def num_tokens(self, index: int) -> int:
        """Return the length of a sentence pair in tokens."""
        pair, number = self._pair_and_number(index)
        return self.datasets[pair].num_tokens(number)

    def size(self, index: int) -> Union[int, Tuple[int, int]]:
        """Return the lengths of source and target, as the pair's dataset does."""
        pair, number = self._pair_and_number(index)
        return self.datasets[pair].size(number)

    @property
    def supports_prefetch(self) -> bool:
        """False: fairseq would name sentences by numbers that no pair's own dataset knows."""
        return False

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        """True: the plan, not the dataset, differs between epochs."""
        return True

    def set_epoch(self, epoch: int) -> None:
        """Tell all pairs' datasets the epoch."""
        for dataset in self.datasets.values():
            dataset.set_epoch(epoch)

    def to_global(self, pair: str, indices: Sequence[int]) -> Batch:
        """Return the numbers in this dataset of a pair's own sentence numbers."""
        start = self.starts[pair]
        return [start + int(index) for index in indices]
