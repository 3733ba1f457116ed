"""The objective of an update: every task's part is a mean over all its minibatches (Eq. 15)."""

from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple, cast

import torch
import torch.distributed as dist
from fairseq.criterions import FairseqCriterion
from fairseq.models import BaseFairseqModel
from torch import nn

from ..common.beam_search import Sample
from ..compat.losses.ignored_prefixes import scored_words

# of a minibatch: its size by the mean size of the minibatches of its task in the update
SHARE = "share_of_update"


def minibatch_size(
    criterion: Optional[FairseqCriterion], by_sentences: bool, minibatch: Sample
) -> int:
    """Return the number that a criterion divides the loss of a minibatch by.

    criterion: None for one that counts all target tokens. by_sentences: it counts sentences
    (--sentence-avg). minibatch: not yet moved to a device, so that the host waits for nothing.
    """
    if by_sentences:
        return int(minibatch["nsentences"])
    # --ignore-prefix-size, which few criterions have
    if getattr(criterion, "ignore_prefix_size", 0) > 0:
        return int(scored_words(cast(Any, criterion), minibatch))
    return int(minibatch["ntokens"])


def note_shares(
    samples: Sequence[Mapping[str, Sample]],
    names: Sequence[str],
    size_of: Callable[[Sample], int],
    device: torch.device,
) -> None:
    """Add ``SHARE`` to every minibatch of an update; with several workers a collective call.

    Args:
        samples: this worker's batches, {name: minibatch} each.
        names: of all pairs and streams, the same on all workers.
        size_of: returns what the criterion divides the loss of a minibatch by.
        device: where several workers add up; the host does not wait for it.
    """
    # minibatches of all batches, by name
    parts = [(name, part) for sample in samples if sample for name, part in sample.items()]
    counts = [size_of(part) for _, part in parts]
    numbers = {name: number for number, name in enumerate(names)}
    sums = torch.zeros(len(names), 2, dtype=torch.double)  # size and number of minibatches
    for (name, _), count in zip(parts, counts):
        sums[numbers[name]] += torch.tensor([count, 1.0], dtype=torch.double)
    is_alone = not dist.is_initialized() or dist.get_world_size() == 1
    if not is_alone:
        sums = sums.to(device)
        dist.all_reduce(sums)
    for (name, part), count in zip(parts, counts):
        size, minibatches = sums[numbers[name]]
        # 1 where the update has one minibatch of the task
        share = count * minibatches / size.clamp(min=1)
        # a double: fairseq turns single precision into half with --fp16
        part[SHARE] = float(share) if is_alone else share


class Weighted(nn.Module):
    """A criterion whose loss is the task's part of the objective (Eq. 15 of the card).

    gamma_m / |D_m| times the sum over D_m is gamma_m times a mean, which the minibatches of an
    update estimate: the criterion's sum is divided by the minibatch's own size, and the minibatches
    of a task count by their sizes (``SHARE``). The sizes returned add up to one for minibatches of
    different tasks, so that nothing but their number divides by them again.
    """

    def __init__(self, criterion: FairseqCriterion, weights: Dict[str, float], pairs: int):
        super().__init__()
        self.criterion, self.weights, self.pairs = criterion, weights, pairs

    def forward(
        self, model: BaseFairseqModel, sample: Sample
    ) -> Tuple[torch.Tensor, float, Dict[str, Any]]:
        """Return the weighted mean loss, the minibatch's share of the update, and the log."""
        loss, size, log = self.criterion(model, sample)
        weight = self.weights[sample["net_input"]["pair"]]
        # fairseq divides the gradients of an update by the sum of the sizes: one for each batch
        return loss * (weight / max(size, 1)) * sample.get(SHARE, 1.0), 1 / self.pairs, log
