"""What a model that trains on several lang pairs logs, pair by pair.

A step's logging output is flat: the criterion's sums over all pairs under their own names and each
pair's sums under "PAIR:NAME". Every pair is always there, with zeros when the step did not touch
it, because fairseq adds the outputs of all workers up by name. Values stay on their device.
"""

from functools import partial
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Union

import numpy as np
import torch
from fairseq import metrics
from fairseq.criterions import FairseqCriterion
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.logging.meters import AverageMeter, Meter, MetersDict
from torch import Tensor

from ..common.corpus_bleu import log_bleu_sums
from ..common.log_sums import logged_sum
from ..compat.corpus_bleu import bleu_of_meters

Log = Dict[str, Any]
# a function of the meters, as fairseq's log_derived takes it
Derived = Callable[[Any], Optional[float]]


def merge_logs(logs: Mapping[str, Log], pairs: Iterable[str]) -> Log:
    """Return {pair: the criterion's (and BLEU's) sums} as one flat output for all ``pairs``.

    fairseq adds the outputs of the workers up in two vectors, tensors of the device and numbers,
    position by position. A pair's zeros are therefore of the type that its values would have: a
    worker on another pair must split its output in the same way.
    """
    zeros = {name: _zero_like(value) for log in logs.values() for name, value in log.items()}
    total = {
        name: sum(log.get(name, 0) for log in logs.values())
        for name in zeros
        if not name.startswith("_bleu")  # no BLEU over several languages
    }
    for pair in pairs:
        log = logs.get(pair, {})
        total.update({f"{pair}:{name}": log.get(name, zero) for name, zero in zeros.items()})
    return total


def _zero_like(value: Union[Tensor, float]) -> Union[Tensor, int]:
    """Return a zero on the device of ``value``, or a number."""
    return torch.zeros_like(value) if torch.is_tensor(value) else 0


def pair_logs(outputs: Iterable[Log], pair: str) -> List[Log]:
    """Return the pair's own part of every logging output, under the criterion's names."""
    prefix = pair + ":"
    return [
        {name[len(prefix) :]: value for name, value in log.items() if name.startswith(prefix)}
        for log in outputs
    ]


class _NotMeasured(Exception):
    """A pair's meter has had no value since the last line of the log."""


def _is_measured(meter: Optional[Meter]) -> bool:
    """True if a meter has a value since it was reset; sums begin at 0 and have one always."""
    return meter is not None and not (isinstance(meter, AverageMeter) and meter.val is None)


class _PairMeters:
    """A pair's meters under the names they have in a run with one pair."""

    def __init__(self, pair: str, meters: MetersDict):
        self.pair, self.meters = pair, meters

    def is_empty(self) -> bool:
        """True if nothing of the pair was measured since the last line of the log."""
        # shown values, and those that only others are derived from
        prefixes = (_pair_name(self.pair, ""), _pair_name(self.pair, "_"))
        return not any(
            isinstance(meter, AverageMeter) and _is_measured(meter)
            for name, meter in self.meters.items()
            if name.startswith(prefixes)
        )

    def __getitem__(self, name: str) -> Meter:
        meter = self.meters.get(_pair_name(self.pair, name))
        if not _is_measured(meter):
            raise _NotMeasured
        return meter

    def get(self, name: str, default: Any = None) -> Any:
        """Return the pair's meter of this name, or ``default`` if it has no value."""
        meter = self.meters.get(_pair_name(self.pair, name))
        return meter if _is_measured(meter) else default


def _pair_name(pair: str, name: str) -> str:
    """Return the name of a pair's meter; fairseq does not show what begins with "_"."""
    return f"_{pair}{name}" if name.startswith("_") else f"{pair}_{name}"


def _derived(pair: str, function: Derived, meters: MetersDict) -> Optional[float]:
    """Return ``function`` of one pair's meters; None, which is not logged, if they lack a value."""
    pair_meters = _PairMeters(pair, meters)
    try:
        return None if pair_meters.is_empty() else function(pair_meters)
    except _NotMeasured:
        return None


def log_pairs(criterion: FairseqCriterion, outputs: List[Log], pairs: Sequence[str]) -> None:
    """Log what the criterion logs, for each pair: "de-en_loss", "de-en_ppl" ...

    What is derived is there for every pair from the first update on, in a resumed run as well:
    checkpoints hold meters but not what is derived from them.
    """
    derived: Dict[str, Derived] = {}
    for pair in pairs:
        derived.update(log_pair(criterion, outputs, pair))
    for pair in pairs:
        for name, function in derived.items():
            metrics.log_derived(
                _pair_name(pair, name), partial(_derived, pair, function), priority=25
            )


def log_pair(criterion: FairseqCriterion, outputs: List[Log], pair: str) -> Dict[str, Derived]:
    """Log one pair's own meters; return {name: function of the meters} of what is derived."""
    logs = pair_logs(outputs, pair)
    derived: Dict[str, Derived] = {}
    if not sum(log.get("sample_size", 0) for log in logs):  # no worker had a batch of the pair
        return derived
    # the criterion logs under its own names, out of sight of the run's meters
    with metrics.aggregate(new_root=True) as pair_meters:
        criterion.__class__.reduce_metrics(logs)
    for name, meter in pair_meters.items():
        # a value that is a function of others, such as perplexity, is derived again from the pair's
        # means: a mean of perplexities would be another number
        if isinstance(meter, MetersDict._DerivedMeter):
            derived[name] = meter.fn
        elif isinstance(meter, AverageMeter):
            metrics.log_scalar(
                _pair_name(pair, name), meter.avg, meter.count, priority=24, round=meter.round
            )
    return derived


def likelihood_log(criterion: FairseqCriterion, log: Log) -> Log:
    """Return log P of a batch's references in nats, and their number, from the criterion's log.

    {} for a criterion that returns no likelihood.
    """
    is_plain = isinstance(criterion, CrossEntropyCriterion)
    nll = log.get("nll_loss", log["loss"] if is_plain else None)
    if nll is None or "nsentences" not in log:
        return {}
    return {"_log_p": -nll, "_references": log["nsentences"]}


def log_likelihoods(outputs: List[Log], pairs: Sequence[str]) -> None:
    """Log the mean log P of a reference, "de-en_log_likelihood", and the mean over the pairs."""
    for pair in pairs:
        logs = pair_logs(outputs, pair)
        references = sum(log.get("_references", 0) for log in logs)
        if references:
            mean = sum(log["_log_p"] for log in logs if "_log_p" in log) / references
            metrics.log_scalar(
                f"{pair}_log_likelihood", mean, weight=references, priority=24, round=3
            )

    def over_pairs(meters: MetersDict) -> float:
        # pairs count alike, however many references each has: the mean is not that of all sentences
        names = [f"{pair}_log_likelihood" for pair in pairs]
        # as numbers: on a GPU they are tensors that numpy does not take
        means = [float(meters[name].avg) for name in names if name in meters]
        return round(float(np.mean(means)), 3)

    if any("_log_p" in log for log in outputs):
        metrics.log_derived("log_likelihood", over_pairs, priority=23)


def log_pair_bleu(outputs: List[Log], pair: str) -> None:
    """Log the sums of one pair's BLEU and, derived from them, "de-en_bleu".

    A pair of which no reference was seen, as --max-valid-steps may leave it, has no BLEU.
    """
    if log_bleu_sums(pair_logs(outputs, pair), f"_{pair}_bleu"):
        metrics.log_derived(f"{pair}_bleu", partial(_bleu, pair), priority=26)


def _has_references(outputs: List[Log], pair: str) -> bool:
    """True if a worker translated a batch of the pair whose references have words."""
    return bool(logged_sum(pair_logs(outputs, pair), "_bleu_ref_len"))


def _bleu(pair: str, meters: MetersDict) -> float:
    """Return the pair's corpus BLEU of the sums in the meters."""
    return bleu_of_meters(meters, f"_{pair}_bleu")


def log_bleu_summary(outputs: List[Log], pairs: Sequence[str]) -> None:
    """Log "bleu", the mean over the pairs that have one, and "worst_bleu", the lowest.

    Called after ``log_pair_bleu`` of all ``pairs``.
    """

    def over_pairs(reduce: Callable[[List[float]], float], meters: MetersDict) -> float:
        measured = [pair for pair in pairs if f"{pair}_bleu" in meters]
        return round(float(reduce([_bleu(pair, meters) for pair in measured])), 2)

    if any(_has_references(outputs, pair) for pair in pairs):
        metrics.log_derived("bleu", partial(over_pairs, np.mean), priority=27)
        metrics.log_derived("worst_bleu", partial(over_pairs, min), priority=27)
