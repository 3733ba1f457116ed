"""Which lang pairs each update trains on.

A slot is the tuple of pairs of one update. All workers and all accumulated minibatches of an
update take batches of its slot, so that the same modules get a gradient everywhere.

    joint        every pair in every update; an epoch is one pass over the largest pair
    cycle        one pair after the other (Firat et al. 2016); the same length of epoch
    main+aux     the main pair and one other pair, drawn at random (Zaremoodi et al. 2018)
    temperature  one pair, drawn with probability ~ size^(1 / temperature)

A pair may take part late, and may leave: then the schedule goes on with the others. The length of
an epoch is set by the pairs that take part when it begins.
"""

import math
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ..common.named_values import named_values

SCHEDULES = ("joint", "cycle", "main+aux", "temperature")
Slot = Tuple[str, ...]


def check_schedule(
    schedule: str, pairs: Sequence[str], main_pair: Optional[str], temperature: float
) -> None:
    """Raise ValueError, naming the option, when a schedule cannot run with these pairs."""
    if schedule not in SCHEDULES:
        raise ValueError(f"--schedule {schedule!r}: must be one of {', '.join(SCHEDULES)}")
    if main_pair not in pairs and (main_pair is not None or schedule == "main+aux"):
        raise ValueError(f"--main-pair {main_pair!r}: must be one of {', '.join(pairs)}")
    if schedule == "main+aux" and len(pairs) < 2:
        raise ValueError("--schedule main+aux: needs at least one pair besides --main-pair")
    if not 0 < temperature < math.inf:
        raise ValueError(f"--schedule-temperature {temperature}: must be greater than 0 and finite")
    if temperature != 1 and schedule != "temperature":
        raise ValueError(
            f"--schedule-temperature {temperature:g} does nothing with --schedule {schedule}; "
            "allowed: --schedule temperature"
        )


def parse_join_at(
    text: Optional[str], pairs: Sequence[str], synthetic: Sequence[str] = ()
) -> Dict[str, int]:
    """Return {pair: updates before it takes part} of "en-fr=5000,de-fr=200".

    ``synthetic`` are streams of synthetic pairs, which it may name as well.

    A pair that the text does not name is not in it: it takes part from the first update on.

    ValueError for a pair that is none of ``pairs`` or named twice, for a number that is not an
    integer of at least 0, and when no pair would start at 0.
    """
    joins: Dict[str, int] = {}
    for entry, pair, number in named_values(text):
        if pair not in pairs and pair not in synthetic:
            names = ", ".join([*pairs, *synthetic])
            raise ValueError(f"--join-at {entry!r}: {pair!r} is none of {names}")
        if pair in joins:
            raise ValueError(f"--join-at {text!r}: {pair!r} is named twice")
        if not (number.isascii() and number.isdigit()):
            raise ValueError(
                f"--join-at {entry!r}: {number!r} must be a number of updates, an integer "
                "of at least 0"
            )
        joins[pair] = int(number)
    if joins and all(joins.get(pair, 0) > 0 for pair in pairs):
        raise ValueError(f"--join-at {text!r}: one pair must take part from the first update")
    return joins


def check_join_at(joins: Mapping[str, int], schedule: str, main_pair: Optional[str]) -> None:
    """Raise ValueError when the main pair of main+aux would join late."""
    if schedule == "main+aux" and main_pair is not None and joins.get(main_pair, 0) > 0:
        raise ValueError(
            f"--join-at {main_pair}={joins[main_pair]}: --main-pair takes part from the first "
            "update"
        )


def epoch_length(
    schedule: str,
    lengths: Mapping[str, int],
    late: Mapping[str, float],
    main_pair: Optional[str] = None,
) -> int:
    """Return the updates of an epoch; its arguments are those of ``epoch_slots``.

    The epoch is as long as those pairs make it that are there at its beginning.
    """
    present = [length for pair, length in lengths.items() if late.get(pair, 0) <= 0]
    if not present:
        return 0
    if schedule == "cycle":
        return max(present) * len(present)  # smaller pairs begin a further pass meanwhile
    if schedule == "main+aux":
        return lengths[_main(main_pair)]  # whatever the other pair is
    # temperature: as many updates as one pass over every pair takes, however they are drawn
    return max(present) if schedule == "joint" else sum(present)


def epoch_slots(
    schedule: str,
    lengths: Dict[str, int],
    sizes: Mapping[str, float],
    random: np.random.RandomState,
    main_pair: Optional[str] = None,
    temperature: float = 1.0,
    late: Optional[Mapping[str, float]] = None,
    count: Optional[int] = None,
) -> List[Slot]:
    """Return the slots of one epoch, in order.

    Args:
        schedule: one of ``SCHEDULES``.
        lengths: updates that one pass over each pair takes.
        sizes: sentences of each pair, or other weights.
        random: the epoch's source of randomness.
        main_pair: for main+aux.
        temperature: for temperature; 1 = in proportion to size, larger = more even.
        late: {pair: slots of this epoch before it takes part}; infinity = not in this epoch.
        count: slots of the epoch, if not ``epoch_length``. A slot in which no pair takes part is
            an empty tuple.
    """
    late = late or {}
    if count is None:
        count = epoch_length(schedule, lengths, late, main_pair)
    # between two neighbouring cuts the same pairs take part
    cuts = sorted({0, count, *(int(cut) for cut in late.values() if 0 < cut < count)})
    slots: List[Slot] = []
    for start, stop in zip(cuts, cuts[1:]):
        pairs = [pair for pair in lengths if late.get(pair, 0) <= start]
        if not pairs:
            slots += [()] * (stop - start)
        elif schedule == "joint":
            slots += [tuple(pairs)] * (stop - start)
        elif schedule == "cycle":
            # the turn goes on where it was before the cut: a pair that joins does not restart it
            slots += _cycle(list(lengths), pairs, stop - start, slots[-1] if slots else ())
        elif schedule == "main+aux":
            slots += _main_and_aux(_main(main_pair), pairs, stop - start, random)
        else:
            probabilities = pair_probabilities([sizes[pair] for pair in pairs], temperature)
            # (slots,) indices of pairs
            drawn = random.choice(len(pairs), size=stop - start, p=probabilities)
            slots += [(pairs[index],) for index in drawn]
    return slots


def _main(pair: Optional[str]) -> str:
    assert pair is not None  # ``check_schedule`` has seen to it
    return pair


def pair_probabilities(sizes: Sequence[float], temperature: float) -> np.ndarray:
    """Return size^(1 / temperature) of each pair, over their sum."""
    counts = np.array(sizes, dtype=float)
    # relative to the largest: a power of the counts themselves overflows for small T
    weights = (counts / counts.max()) ** (1.0 / temperature)
    return weights / weights.sum()


def _cycle(order: List[str], pairs: List[str], count: int, before: Slot) -> List[Slot]:
    """Return the cycle over ``pairs`` from the one after the slot ``before`` in ``order``."""
    first = order.index(before[0]) + 1 if before else 0  # the slot of one pair
    turn = [pair for pair in order[first:] + order[:first] if pair in pairs]
    return [(turn[number % len(turn)],) for number in range(count)]


def _main_and_aux(
    main_pair: str, pairs: List[str], count: int, random: np.random.RandomState
) -> List[Slot]:
    """Return the main pair with one drawn at random, as far as they take part."""
    # it may have left, and the others train alone
    main = (main_pair,) if main_pair in pairs else ()
    others = [pair for pair in pairs if pair != main_pair]
    # all others have left or are still to join
    if not others:
        return [main] * count
    return [main + (others[index],) for index in random.randint(len(others), size=count)]
