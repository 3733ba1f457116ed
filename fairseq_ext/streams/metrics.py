"""What a model that trains on several lang pairs logs, pair by pair.

A step's logging output is flat: the criterion's sums over all pairs under their own names and each
pair's sums under "PAIR:NAME". Every pair is always there, with zeros when the step did not touch
it, because fairseq adds the outputs of all workers up by name. Values stay on their device.
"""

from functools import partial
from typing import Any, Dict, Iterable, List

import numpy as np
import torch
from fairseq import metrics
from fairseq.logging.meters import AverageMeter, MetersDict

Log = Dict[str, Any]
BLEU_ORDER = 4
BLEU_SUMS = ("counts", "totals")
BLEU_LENGTHS = ("sys_len", "ref_len")


def merge_logs(logs: Dict[str, Log], pairs: Iterable[str]) -> Log:
    """{pair: the criterion's (and BLEU's) sums} -> one flat logging output for all ``pairs``.

    fairseq adds the outputs of the workers up in two vectors, tensors of the device and numbers,
    position by position. A pair's zeros are therefore of the type that its values would have: a
    worker on another pair must split its output in the same way.
    """
    zeros = {name: _zero_like(value) for log in logs.values() for name, value in log.items()}
    total = {
        name: sum(log.get(name, 0) for log in logs.values())
        for name in zeros
        if not name.startswith("_bleu")
    }
    for pair in pairs:
        log = logs.get(pair, {})
        total.update({f"{pair}:{name}": log.get(name, zero) for name, zero in zeros.items()})
    return total


def _zero_like(value):
    return torch.zeros_like(value) if torch.is_tensor(value) else 0


def pair_logs(outputs: List[Log], pair: str) -> List[Log]:
    """The pair's own part of every logging output, under the criterion's names."""
    prefix = pair + ":"
    return [
        {name[len(prefix) :]: value for name, value in log.items() if name.startswith(prefix)}
        for log in outputs
    ]


class _PairMeters:
    """A pair's meters under the names they have in a run with one pair."""

    def __init__(self, pair: str, meters: MetersDict):
        self.pair, self.meters = pair, meters

    def __getitem__(self, name: str):
        return self.meters[f"{self.pair}_{name}"]


def _derived(pair, function, meters):
    return function(_PairMeters(pair, meters))


def log_pair(criterion, outputs: List[Log], pair: str) -> None:
    """Log what the criterion logs, for one pair: "de-en_loss", "de-en_ppl" ..."""
    logs = pair_logs(outputs, pair)
    if not sum(log.get("sample_size", 0) for log in logs):
        return
    with metrics.aggregate(new_root=True) as own:
        criterion.__class__.reduce_metrics(logs)
    for name, meter in own.items():
        if isinstance(meter, MetersDict._DerivedMeter):
            metrics.log_derived(f"{pair}_{name}", partial(_derived, pair, meter.fn), priority=25)
        elif isinstance(meter, AverageMeter):
            metrics.log_scalar(
                f"{pair}_{name}", meter.avg, meter.count, priority=24, round=meter.round
            )


def _sum(logs: List[Log], name: str):
    total = sum(log.get(name, 0) for log in logs)
    return total.cpu() if torch.is_tensor(total) else total


def log_pair_bleu(outputs: List[Log], pair: str) -> None:
    """Log the sums of one pair's BLEU and, derived from them, "de-en_bleu"."""
    logs = pair_logs(outputs, pair)
    for sums in BLEU_SUMS:
        found = [int(_sum(logs, f"_bleu_{sums}_{order}")) for order in range(BLEU_ORDER)]
        metrics.log_scalar(f"_{pair}_bleu_{sums}", np.array(found))
    for length in BLEU_LENGTHS:
        metrics.log_scalar(f"_{pair}_bleu_{length}", int(_sum(logs, f"_bleu_{length}")))
    metrics.log_derived(f"{pair}_bleu", partial(_bleu, pair), priority=26)


def _bleu(pair: str, meters) -> float:
    from sacrebleu.metrics import BLEU

    score = BLEU.compute_bleu(
        correct=[int(count) for count in meters[f"_{pair}_bleu_counts"].sum],
        total=[int(count) for count in meters[f"_{pair}_bleu_totals"].sum],
        sys_len=int(meters[f"_{pair}_bleu_sys_len"].sum),
        ref_len=int(meters[f"_{pair}_bleu_ref_len"].sum),
        smooth_method="exp",
    )
    return round(score.score, 2)


def log_bleu_summary(pairs: List[str]) -> None:
    """Log "bleu", the mean over the pairs, and "worst_bleu", the lowest."""

    def over_pairs(reduce, meters):
        return round(float(reduce([_bleu(pair, meters) for pair in pairs])), 2)

    metrics.log_derived("bleu", partial(over_pairs, np.mean), priority=27)
    metrics.log_derived("worst_bleu", partial(over_pairs, min), priority=27)
