"""Which worker trains which pairs (--pair-parallel)."""

from collections import Counter
from typing import Dict, FrozenSet, Iterable, Iterator, List, Mapping, Tuple

# how far the largest load may be above that of the assignment by loads alone
TOLERANCE = 1.1
# the pairs of each worker
Assignment = List[List[str]]


class _Costs:
    """What is minimised: loads above the limit, parameters held by all workers, largest load.

    Parameters that the same pairs use count as one part.
    """

    def __init__(self, loads: Mapping[str, int], uses: Mapping[str, Mapping[str, int]]):
        self.loads = loads
        users: Dict[str, FrozenSet[str]] = {}  # {parameter: the pairs that use it}
        for pair, names in uses.items():
            for name in names:
                users[name] = users.get(name, frozenset()) | {pair}
        # {the pairs that use a part: its elements}
        self.sizes: Dict[FrozenSet[str], int] = Counter()
        for name, pairs in users.items():
            # a parameter is as large under each of its pairs: any of them may be asked
            self.sizes[pairs] += next(uses[pair][name] for pair in pairs)
        # a worker with several pairs holds the union of their
        # parts: what two of them share counts once
        self.parts = {pair: {part for part in self.sizes if pair in part} for pair in loads}

    def load(self, pairs: Iterable[str]) -> int:
        """Return the batches of a worker with these pairs."""
        return sum(self.loads[pair] for pair in pairs)

    def elements(self, pairs: Iterable[str]) -> int:
        """Return the size of the parameters that a worker with these pairs holds."""
        parts = {part for pair in pairs for part in self.parts[pair]}
        return sum(self.sizes[part] for part in parts)

    def __call__(self, workers: Assignment, limit: float) -> Tuple[float, int, int]:
        """Return the costs of an assignment; of two, the first that differs decides."""
        loads = [self.load(pairs) for pairs in workers]
        # in the order of importance: how even the loads within the limit are only decides between
        # assignments that are equal in all else
        above = sum(max(0.0, load - limit) for load in loads)
        return above, sum(self.elements(pairs) for pairs in workers), max(loads)


def assign_pairs(
    loads: Mapping[str, int], uses: Mapping[str, Mapping[str, int]], workers: int
) -> Assignment:
    """Divide pairs among workers: even loads, and on each worker pairs that share their modules.

    First the pairs go, largest first, to the worker with the least load. Then pairs are moved and
    exchanged as long as that lowers the number of parameters that the workers hold together,
    without a load more than 10% above the largest that the first step gave.

    Args:
        loads: {pair: its batches}, at least as many pairs as workers.
        uses: {pair: {parameter: its size}}.
        workers: their number.

    Returns the pairs of each worker, in the order of ``loads``; a function of the arguments.
    """
    costs, order = _Costs(loads, uses), list(loads)
    assignment: Assignment = [[] for _ in range(workers)]
    # the largest first, so that small ones fill what is uneven. sorted() and min() take the first
    # of equals: every worker comes to the same assignment without asking the others
    for pair in sorted(order, key=lambda pair: -loads[pair]):
        # the number of pairs breaks ties: a worker without any
        # goes before one whose pairs are empty
        min(assignment, key=lambda pairs: (costs.load(pairs), len(pairs))).append(pair)
    limit = TOLERANCE * max(costs.load(pairs) for pairs in assignment)
    lowest = costs(assignment, limit)
    # costs fall with every step, so the search comes to an end
    while True:
        better = next((new for new in _neighbours(assignment) if costs(new, limit) < lowest), None)
        if better is None:
            break
        assignment, lowest = better, costs(better, limit)
    # the order must not depend on the search: it numbers the workers
    assignment = [sorted(pairs, key=order.index) for pairs in assignment]
    return sorted(assignment, key=lambda pairs: order.index(pairs[0]))


def _neighbours(workers: Assignment) -> Iterator[Assignment]:
    """Yield all assignments in which one pair has moved or two have changed places."""
    for first in range(len(workers)):
        for second in range(len(workers)):
            if first == second:
                continue
            for pair in workers[first]:
                # a worker always has a pair: without, it would have nothing but empty batches
                if len(workers[first]) > 1:
                    yield _exchanged(workers, first, [pair], second, [])
                for other in workers[second] if first < second else ():  # the same from both sides
                    yield _exchanged(workers, first, [pair], second, [other])


def _exchanged(
    workers: Assignment, first: int, out: List[str], second: int, back: List[str]
) -> Assignment:
    """Return the assignment with ``out`` moved to worker ``second`` and ``back`` to ``first``."""
    new = [list(pairs) for pairs in workers]
    new[first] = [pair for pair in new[first] if pair not in out] + back
    new[second] = [pair for pair in new[second] if pair not in back] + out
    return new
