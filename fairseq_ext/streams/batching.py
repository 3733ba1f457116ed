"""Minibatches of the pairs of a dataset; directions of the same sentences have the same ones."""

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from fairseq.data import FairseqDataset, data_utils

from .dataset import Batch, StreamsDataset
from .sentence_sets import BothDirections

# (sentence numbers, dataset, limits) -> those within the limits
Filter = Callable[[np.ndarray, FairseqDataset, Any], np.ndarray]
Limits = Optional[Tuple[int, int]]


def pair_batches(
    dataset: StreamsDataset,
    seed: int,
    sizes: Mapping[str, Any],
    max_positions: Limits,
    filter_by_size: Filter,
) -> Dict[str, List[Batch]]:
    """Return {pair: minibatches of the pair's own sentence numbers}; one list for each set.

    Args:
        dataset: all pairs.
        seed: of the order among sentences of one length.
        sizes: the limits of a batch, as of ``FairseqDataset.batch_by_size``.
        max_positions: (source, target) limits in tokens; None: no limits.
        filter_by_size: leaves out, or refuses, longer sentences.

    Raises ValueError for a pair of which no sentence is left.
    """
    batches: Dict[str, List[Batch]] = {}
    for name in dict.fromkeys(dataset.sets.values()):
        # the pair that gave the set its name decides the order
        pairs = [name, *(pair for pair in dataset.sets if dataset.sets[pair] == name != pair)]
        parts = [dataset.datasets[pair] for pair in pairs]
        # cut once for the set: both directions see the same
        # sentences in an update (--schedule joint)
        common = _common_batches(parts, seed, sizes, max_positions, filter_by_size)
        if not common:
            raise ValueError(
                f"pair {name}: no sentence is left: all are longer than --max-tokens, "
                f"--max-source-positions and --max-target-positions allow {max_positions}; "
                "allowed: larger ones"
            )
        batches.update(dict.fromkeys(pairs, common))
    # in the order of the pairs, that of --schedule cycle
    return {pair: batches[pair] for pair in dataset.sets}


def _common_batches(
    parts: Sequence[FairseqDataset],
    seed: int,
    sizes: Mapping[str, Any],
    max_positions: Limits,
    filter_by_size: Filter,
) -> List[Batch]:
    """Return minibatches of the sentences of ``parts``, within the limits of all of them."""
    # lengths of both directions count: --truncate-source cuts another side in each
    together = parts[0] if len(parts) == 1 else BothDirections(parts)
    # fairseq's datasets draw from NumPy's global state
    with data_utils.numpy_seed(seed):
        indices = together.ordered_indices()
    for part in parts if max_positions is not None else ():
        indices = filter_by_size(indices, part, max_positions)  # too long in one: left out of both
    return [list(batch) for batch in together.batch_by_size(indices, **sizes)]
