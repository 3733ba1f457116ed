"""The criterion ``label_cross_entropy``: loss, accuracy and macro-F1 of labels.

Dimensions: B texts, L labels.
"""

import math

import torch
from fairseq import metrics
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from torch import Tensor
from torch.nn import functional as F

from ..common.labels import numbers


@register_criterion("label_cross_entropy", dataclass=FairseqDataclass)
class LabelCrossEntropy(FairseqCriterion):
    """-log P(label | text), summed over texts; the gradient is that of the mean over texts.

    Logged: ``loss`` in bits per text, ``accuracy`` and, in validation, ``macro_f1`` in percent.
    """

    def forward(self, model, sample, reduce=True):
        """Loss (sum over the batch; (B,) values without ``reduce``), texts, sums to be logged."""
        output = model(**sample["net_input"])
        target = numbers(sample["target"], self.task.target_dictionary)  # (B,)
        log_probs = model.get_normalized_probs(output, log_probs=True)  # (B, L)
        loss = F.nll_loss(log_probs, target, reduction="sum" if reduce else "none")
        found, texts = log_probs.argmax(dim=1), target.size(0)
        log = {"loss": loss.detach(), "correct": found.eq(target).sum()}
        if not self.training:
            log["label_counts"] = counts(found, target, log_probs.size(1))
        sizes = {"ntokens": sample["ntokens"], "nsentences": texts, "sample_size": texts}
        return loss, texts, {**log, **sizes}

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        def total(name):
            return sum(log.get(name, 0) for log in logging_outputs)

        texts = total("sample_size")
        metrics.log_scalar("loss", total("loss") / texts / math.log(2), texts, round=4)
        metrics.log_scalar("accuracy", 100.0 * total("correct") / texts, texts, round=2)
        if any("label_counts" in log for log in logging_outputs):
            metrics.log_scalar_sum("_label_counts", total("label_counts").cpu())
            metrics.log_derived("macro_f1", lambda meters: macro_f1(meters["_label_counts"].sum))

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


def counts(found: Tensor, target: Tensor, labels: int) -> Tensor:
    """Two (B,) -> (3, L): how often each label was found rightly, found, and true."""
    found, target = F.one_hot(found, labels), F.one_hot(target, labels)  # (B, L)
    return torch.stack([found * target, found, target]).sum(dim=1)


def macro_f1(label_counts: Tensor) -> float:
    """Mean of the labels' F1 in percent, over the labels that were found or true at least once.

    F1 = 2 hits / (found + true); (3, L) counts as ``counts`` makes them.
    """
    hits, found, true = label_counts.double()
    seen = (found + true) > 0
    return round((100 * 2 * hits[seen] / (found + true)[seen]).mean().item(), 2)
