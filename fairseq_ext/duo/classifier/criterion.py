"""The criterion ``label_cross_entropy``: loss, accuracy and macro-F1 of labels.

Dimensions: B texts, L labels.
"""

import math
from functools import partial
from typing import Any, Dict, List, Tuple

import torch
from fairseq import metrics
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel
from torch import Tensor
from torch.nn import functional as F

from ...common.labels import numbers
from ...common.log_sums import logged_sum


@register_criterion("label_cross_entropy", dataclass=FairseqDataclass)
class LabelCrossEntropy(FairseqCriterion):
    """-log P(label | text), summed over texts; the gradient is that of the mean over texts.

    Logged: ``loss`` in bits per text, ``accuracy`` and, in validation, ``macro_f1`` in percent.
    """

    def forward(
        self, model: BaseFairseqModel, sample: Dict[str, Any], reduce: bool = True
    ) -> Tuple[Tensor, int, Dict[str, Any]]:
        """Return the loss (a sum; (B,) without ``reduce``), the texts, and sums to be logged."""
        output = model(**sample["net_input"])
        target = numbers(sample["target"], self.task.target_dictionary)  # (B,)
        log_probs = model.get_normalized_probs(output, log_probs=True)  # (B, L)
        # sums, as fairseq divides by the number of texts once, over all workers
        loss = F.nll_loss(log_probs, target, reduction="sum" if reduce else "none")
        predicted, texts = log_probs.argmax(dim=1), target.size(0)
        log = {"loss": loss.detach(), "correct": predicted.eq(target).sum()}
        if not self.training:
            log["label_counts"] = counts(predicted, target, log_probs.size(1))
        sizes = {"ntokens": sample["ntokens"], "nsentences": texts, "sample_size": texts}
        return loss, texts, {**log, **sizes}

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        """Log the values of the class docstring; fairseq calls this once per log interval."""
        total = partial(logged_sum, logging_outputs)
        texts = total("sample_size")
        metrics.log_scalar("loss", total("loss") / texts / math.log(2), texts, round=4)
        metrics.log_scalar("accuracy", 100.0 * total("correct") / texts, texts, round=2)
        # F1 is no mean over batches: the counts are added up, and it is derived from their sum
        if any("label_counts" in log for log in logging_outputs):
            metrics.log_scalar_sum("_label_counts", total("label_counts").cpu())
            metrics.log_derived("macro_f1", lambda meters: macro_f1(meters["_label_counts"].sum))

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """True: all that is logged is a sum over texts."""
        return True


def counts(predicted: Tensor, target: Tensor, labels: int) -> Tensor:
    """Return (3, L): how often each label was predicted rightly, predicted, and true; from (B,)."""
    predicted, target = F.one_hot(predicted, labels), F.one_hot(target, labels)  # (B, L)
    # rows: hits, predicted, true
    return torch.stack([predicted * target, predicted, target]).sum(dim=1)


def macro_f1(label_counts: Tensor) -> float:
    """Return the mean F1 of the labels that were predicted or true at least once, in percent.

    F1 = 2 hits / (predicted + true); (3, L) counts as ``counts`` makes them.
    """
    hits, predicted, true = label_counts.double()
    # a label that is neither predicted nor true has no F1
    seen = (predicted + true) > 0
    return round((100 * 2 * hits[seen] / (predicted + true)[seen]).mean().item(), 2)
