"""The order of batches where some updates are of synthetic pairs."""

import math
from typing import Any, Dict, List, Mapping, Sequence

import numpy as np

from .language_pair import pair_of
from .plan import TrainingPlan
from .schedule import Slot
from .synthetic_share import SyntheticShare


class MixedPlan(TrainingPlan):
    """The schedule over real pairs, with updates of synthetic streams in between.

    ``share`` says which updates are synthetic, and the schedule which streams these take: all of
    them (joint), one in turn (cycle), one drawn by size (temperature), or the main pair and a
    random stream (main+aux). Where each stream has a share, one is drawn by these. Synthetic
    updates lengthen an epoch, which remains a pass over the real pairs. A stream leaves together
    with the pair of its direction.

    Args:
        synthetic: those of the streams that are synthetic.
        share: of the updates that are synthetic.
        waits: True if streams take part only once ``PairPatience`` has let them join.
        options: those of ``TrainingPlan``; ``join_at`` may name streams.
    """

    def __init__(
        self,
        synthetic: Sequence[str],
        share: SyntheticShare,
        waits: bool,
        *options: Any,
        **named: Any,
    ):
        super().__init__(*options, **named)
        self.synthetic, self.share, self.waits = list(synthetic), share, waits
        self.pairs = [pair for pair in self.pairs if pair not in self.synthetic]

    def _starts(self, epoch: int, begin: int) -> Dict[str, float]:
        """Return {stream that has not left: updates of the run before it takes part}."""
        left = self.state.has_left(epoch)
        present = [stream for stream in self.synthetic if pair_of(stream) not in left]
        if not self.waits:
            return {stream: self._joins(stream) for stream in present}
        begins_at = self.state.begins_at
        for stream, first in self.state.joins_in.items():
            # epochs are planned one after the other, so that this one is not passed by
            if epoch == first:
                begins_at[stream] = begin
        return {
            stream: begins_at[stream] if begins_at.get(stream, math.inf) <= begin else math.inf
            for stream in present
        }

    def _joins(self, stream: str) -> int:
        """Return the updates of the run before a stream takes part that waits for no loss."""
        return max(self.join_at.get(stream, 0), self.state.added_at.get(stream, 0))

    def _chosen(self, epoch: int, begin: int) -> np.ndarray:
        """Return which updates of the epoch are synthetic, (N,) bool."""
        starts = self._starts(epoch, begin)
        start = min(starts.values(), default=math.inf)
        # Pairs that join within the epoch do not lengthen it:
        # its number of real updates is known before.
        others = super()._length(epoch, begin)
        return self._share(starts).chosen(begin, start, others, self._origin())

    def _share(self, starts: Mapping[str, float]) -> SyntheticShare:
        """Return the share of the updates: of streams with shares of their own, those present.

        Args:
            starts: {stream that has not left: updates of the run before it takes part}.
        """
        of_streams, points = self.share.of_streams, [(-1, 0.0)]
        for start in sorted({start for start in starts.values() if start != math.inf}):
            update = int(start - self._origin())
            total = sum(of_streams.get(name, 0.0) for name in starts if starts[name] <= start)
            # a step, no line: up to the update before the share is as it was
            if points[-1][0] < update - 1:
                points.append((update - 1, points[-1][1]))
            points.append((update, total))
        return SyntheticShare(points, of_streams) if of_streams else self.share

    def _origin(self) -> float:
        """Return the updates from which the share is counted: where a stream leaves, no others."""
        if not self.waits:
            return min(map(self._joins, self.synthetic))
        return min(self.state.begins_at.get(stream, math.inf) for stream in self.synthetic)

    def _length(self, epoch: int, begin: int) -> int:
        """Return the updates of an epoch, synthetic ones included."""
        return len(self._chosen(epoch, begin))

    def slots(self, epoch: int) -> List[Slot]:
        """Return the streams of every update of the epoch."""
        begin = self.begin(epoch)
        chosen, starts = self._chosen(epoch, begin), self._starts(epoch, begin)
        late = _among(self._late(epoch, begin), ~chosen)
        real = iter(self._slots_of(self.pairs, epoch, late, int((~chosen).sum())))
        late_streams = {stream: start - begin for stream, start in starts.items()}
        # an iterator: there may be no stream left to draw
        synthetic = iter(self._synthetic(epoch, begin, chosen, _among(late_streams, chosen)))
        return [next(synthetic if is_synthetic else real) for is_synthetic in chosen]

    def _synthetic(
        self, epoch: int, begin: int, chosen: np.ndarray, late: Mapping[str, float]
    ) -> List[Slot]:
        """Return the slots of the synthetic updates; ``late`` counts these alone."""
        streams, late = list(late), dict(late)
        if not streams:
            return []
        # it may have left
        main_late = self._late(epoch, begin).get(self.main_pair or "", 0)
        count, keys, weights = int(chosen.sum()), ("synthetic slots",), self.share.of_streams
        if self.schedule == "main+aux":
            assert self.main_pair is not None
            if weights:
                main = (self.main_pair,) if main_late <= 0 else ()
                drawn = self._slots_of(streams, epoch, late, count, keys, weights)
                return [main + slot for slot in drawn]
            streams.insert(0, self.main_pair)
            late[self.main_pair] = main_late
        if self.schedule == "cycle" and not weights:
            # the turn goes on where the epoch before has left it, which may have had few of them
            start = min(self._starts(epoch, begin).values())
            turn = 0 if start == math.inf else self.share.count(begin - int(start)) % len(streams)
            streams = streams[turn:] + streams[:turn]
        return self._slots_of(streams, epoch, late, count, keys, weights)


def _among(late: Mapping[str, float], counted: np.ndarray) -> Dict[str, float]:
    """Return ``late``, given in updates of the epoch, as numbers of the ``counted`` ones."""
    return {
        pair: number if number == math.inf else int(counted[: max(0, int(number))].sum())
        for pair, number in late.items()
    }
