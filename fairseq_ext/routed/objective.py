"""The objective of an update: every task's part is a mean over all its minibatches (Eq. 15)."""

from typing import Any, Dict, Mapping, Sequence, Tuple

import torch
import torch.distributed as dist
from fairseq.criterions import FairseqCriterion
from fairseq.models import BaseFairseqModel
from torch import nn

from ..common.beam_search import Sample

# of a minibatch: its size by the mean size of the minibatches of its task in the update
SHARE = "share_of_update"


def note_shares(
    samples: Sequence[Mapping[str, Sample]],
    names: Sequence[str],
    by_sentences: bool,
    device: torch.device,
) -> None:
    """Add ``SHARE`` to every minibatch of an update; with several workers a collective call.

    Args:
        samples: this worker's batches, {name: minibatch} each.
        names: of all pairs and streams, the same on all workers.
        by_sentences: count sentences in place of target tokens (--sentence-avg).
        device: where several workers add up; the host does not wait for it.
    """
    count = "nsentences" if by_sentences else "ntokens"
    # minibatches of all batches, by name
    parts = [(name, part) for sample in samples if sample for name, part in sample.items()]
    numbers = {name: number for number, name in enumerate(names)}
    sums = torch.zeros(len(names), 2, dtype=torch.double)  # size and number of minibatches
    for name, part in parts:
        sums[numbers[name]] += torch.tensor([part[count], 1.0], dtype=torch.double)
    is_alone = not dist.is_initialized() or dist.get_world_size() == 1
    if not is_alone:
        sums = sums.to(device)
        dist.all_reduce(sums)
    for name, part in parts:
        size, minibatches = sums[numbers[name]]
        # 1 where the update has one minibatch of the task
        share = part[count] * minibatches / size.clamp(min=1)
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
