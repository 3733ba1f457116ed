"""Which updates of a run are of synthetic pairs: a function of the update's number alone."""

from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np

from ..common.named_values import entries, named_values
from .language_pair import LABEL

# at least one update in a hundred is of real pairs: an epoch is a pass over them
GREATEST = 0.99


class SyntheticShare:
    """The share of synthetic updates over time.

    Args:
        points: (update, share), updates in growing order. Between two points the share changes
            linearly, before the first and after the last it is constant. Updates are counted from
            the one at which the first synthetic pairs take part.
        of_streams: {stream: its share}, which add up to the share; empty: the schedule chooses.
    """

    def __init__(
        self, points: List[Tuple[int, float]], of_streams: Optional[Dict[str, float]] = None
    ):
        self.points, self.of_streams = points, of_streams or {}

    def chosen(
        self, begin: int, start: float, others: int, origin: Optional[float] = None
    ) -> np.ndarray:
        """Return which updates of an epoch are synthetic, (N,) bool, ``others`` of them False.

        Update n is one of them where the sum of the shares before it and its own pass a whole
        number: share 1/2 chooses every second update.

        Args:
            begin: updates of the run before the epoch.
            start: updates before synthetic pairs take part; infinity: none do.
            others: updates of the epoch that are not synthetic.
            origin: updates before the first synthetic pairs took part, which may have left since;
                default: ``start``.
        """
        if start == np.inf:
            return np.zeros(others, dtype=bool)
        before = max(0, int(start) - begin)  # updates of the epoch
        if before >= others:
            return np.zeros(others, dtype=bool)
        left = others - before
        updates, shares = zip(*self.points)
        longest = int(left / (1 - max(shares))) + 2
        first = max(begin, int(start)) - int(start if origin is None else min(origin, start))
        # the sum begins with the first update, wherever the epoch begins
        sums = np.cumsum(np.interp(np.arange(first + longest), updates, shares))
        # rounded: a sum of ten times 0.1 is to be one
        whole = np.floor(np.round(np.concatenate([[0.0], sums]), 6))
        is_synthetic = np.diff(whole)[first:] > 0
        length = int(np.searchsorted(np.cumsum(~is_synthetic), left)) + 1
        return np.concatenate([np.zeros(before, dtype=bool), is_synthetic[:length]])

    def count(self, number: int) -> int:
        """Return how many of the first ``number`` updates are synthetic."""
        if number <= 0:
            return 0
        updates, shares = zip(*self.points)
        return int(np.round(np.sum(np.interp(np.arange(number), updates, shares)), 6))


def parse_share(text: str, streams: Sequence[str] = ()) -> SyntheticShare:
    """Return the share of "0.5", or of "0=0.1,5000=0.5", which grows over 5000 updates.

    "de-en@bt=0.3,en-de@mono=0.2" has a share for each of the ``streams``. ValueError for shares
    that are not from 0 to 0.99, for updates that do not grow, and for other streams than these.
    """
    points: List[Tuple[int, float]] = []
    if LABEL in text:
        return _share_of_streams(text, streams)
    parts = entries(text)
    for entry in parts:
        update, equals, share = entry.rpartition("=")
        is_number = update.strip().isascii() and update.strip().isdigit()
        if not is_number and (equals or len(parts) > 1):
            raise ValueError(
                f"--synthetic-share {text!r}: {entry!r} is not of the form UPDATE=SHARE with an "
                "integer of at least 0"
            )
        points.append((int(update or 0), _share(text, share)))
    updates = [update for update, _ in points]
    if not points or sorted(set(updates)) != updates:
        raise ValueError(
            f"--synthetic-share {text!r}: must be a share, such as 0.5, or UPDATE=SHARE,.. with "
            "updates that grow"
        )
    return SyntheticShare(points)


def _share_of_streams(text: str, streams: Sequence[str]) -> SyntheticShare:
    """Return the share of STREAM=SHARE,..; ValueError unless every stream has one."""
    shares: Dict[str, float] = {}
    for _, stream, number in named_values(text):
        if stream not in streams or stream in shares:
            problem = "is named twice" if stream in shares else f"is none of {', '.join(streams)}"
            raise ValueError(f"--synthetic-share {text!r}: {stream!r} {problem}")
        shares[stream] = _share(text, number)
    missing = [stream for stream in streams if stream not in shares]
    total = sum(shares.values())
    if missing or not 0 < total <= GREATEST or not all(shares.values()):
        raise ValueError(
            f"--synthetic-share {text!r}: must have a share above 0 for each of "
            f"{', '.join(streams)}, of together at most {GREATEST}"
        )
    return SyntheticShare([(0, total)], shares)


def _share(text: str, number: str) -> float:
    """Return the number; ValueError unless it is from 0 to ``GREATEST``."""
    try:
        share = float(number)
    except ValueError:
        share = -1.0
    if not 0 <= share <= GREATEST:
        raise ValueError(
            f"--synthetic-share {text!r}: {number!r} must be a number from 0 to {GREATEST}"
        )
    return share
