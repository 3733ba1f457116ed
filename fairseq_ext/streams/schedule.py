"""Which lang pairs each update trains on.

A slot is the tuple of pairs of one update. All workers and all accumulated minibatches of an
update take batches of its slot, so that the same modules get a gradient everywhere.

    joint        every pair in every update; an epoch is one pass over the largest pair
    cycle        one pair after the other (Firat et al. 2016); the same length of epoch
    main+aux     the main pair and one other pair, drawn at random (Zaremoodi et al. 2018)
    temperature  one pair, drawn with probability ~ size^(1 / temperature)
"""

from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np

SCHEDULES = ("joint", "cycle", "main+aux", "temperature")
Slot = Tuple[str, ...]


def parse_lang_pairs(text: str) -> List[str]:
    """ "de-en,fr-en" -> ["de-en", "fr-en"]; ValueError for anything else than distinct pairs."""
    pairs = [pair.strip() for pair in text.split(",") if pair.strip()]
    for pair in pairs:
        source, dash, target = pair.partition("-")
        if not (source and dash and target) or "-" in target or source == target:
            raise ValueError(
                f"--lang-pairs {text!r}: {pair!r} is not of the form SOURCE-TARGET "
                "with two different languages without a dash in their names"
            )
    if not pairs:
        raise ValueError(f"--lang-pairs {text!r}: names no pair")
    repeated = sorted({pair for pair in pairs if pairs.count(pair) > 1})
    if repeated:
        raise ValueError(f"--lang-pairs {text!r}: {repeated[0]!r} is named twice")
    return pairs


def check_direction(source: str, target: str) -> None:
    """Raise ValueError unless -s and -t name two different languages without a dash."""
    if source == target or not source or not target or "-" in source + target:
        raise ValueError(
            f"-s {source} -t {target}: must be two different languages without a dash in their "
            "names"
        )


def check_schedule(
    schedule: str, pairs: Sequence[str], main_pair: Optional[str], temperature: float
) -> None:
    """Raise ValueError, naming the option, when a schedule cannot run with these pairs."""
    if schedule not in SCHEDULES:
        raise ValueError(f"--schedule {schedule!r}: must be one of {', '.join(SCHEDULES)}")
    if schedule == "main+aux":
        if main_pair not in pairs:
            raise ValueError(f"--main-pair {main_pair!r}: must be one of {', '.join(pairs)}")
        if len(pairs) < 2:
            raise ValueError("--schedule main+aux: needs at least one pair besides --main-pair")
    if schedule == "temperature" and not temperature > 0:
        raise ValueError(f"--schedule-temperature {temperature}: must be greater than 0")


def epoch_slots(
    schedule: str,
    lengths: Dict[str, int],
    sizes: Dict[str, int],
    random: np.random.RandomState,
    main_pair: Optional[str] = None,
    temperature: float = 1.0,
) -> List[Slot]:
    """The slots of one epoch, in order.

    Args:
        schedule: one of ``SCHEDULES``.
        lengths: updates that one pass over each pair takes.
        sizes: sentences of each pair.
        random: the epoch's source of randomness.
        main_pair: for main+aux.
        temperature: for temperature; 1 = in proportion to size, larger = more even.
    """
    pairs = list(lengths)
    longest = max(lengths.values())
    if schedule == "joint":
        return [tuple(pairs)] * longest
    if schedule == "cycle":
        return [(pair,) for _ in range(longest) for pair in pairs]
    if schedule == "main+aux":
        others = [pair for pair in pairs if pair != main_pair]
        drawn = random.randint(len(others), size=lengths[main_pair])
        return [(main_pair, others[index]) for index in drawn]
    weights = np.array([float(sizes[pair]) for pair in pairs]) ** (1.0 / temperature)
    drawn = random.choice(len(pairs), size=sum(lengths.values()), p=weights / weights.sum())
    return [(pairs[index],) for index in drawn]
