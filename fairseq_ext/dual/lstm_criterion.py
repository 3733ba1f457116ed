"""Criterions of the asymmetric setting: both losses, scores, and dual supervised learning.

Dimensions: B sentences, T positions, N entries of a dictionary.
"""

import math
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

from fairseq import metrics
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from torch import Tensor

from ..common.losses import label_smoothed_cross_entropy
from .duality import DualityGap, Part, duality_gap
from .marginals import Marginals


@dataclass
class DualLabelCrossEntropyConfig(FairseqDataclass):
    label_weight: ChoiceEnum(("text", "token")) = field(
        default="text",
        metadata={
            "help": "-log P(label|text) counts as much as: text, all tokens of its text, so that "
            "each direction has the mean of its loss; token, one of them, the plain sum over pairs"
        },
    )


@register_criterion("dual_label_cross_entropy", dataclass=DualLabelCrossEntropyConfig)
class DualLabelCrossEntropy(FairseqCriterion):
    """-log P(label | text; f) or -log P(text | label; g), whichever the batch is of.

    Logged: ``loss`` in bits; of text-label ``error``, the error rate in percent; of label-text
    ``ppl``, exp(-sum log P(x|y) / sum N), where the end symbol belongs to x and is counted in N.
    """

    def __init__(self, task, label_weight):
        super().__init__(task)
        self.label_weight = str(label_weight)

    def forward(self, model, sample, reduce=True):
        """Loss (a sum), what it is divided by, and sums to be logged."""
        loss, _, log = self.score(model, sample)
        return loss, log["sample_size"], log

    def score(self, model, sample) -> Tuple[Tensor, Tensor, Dict[str, Any]]:
        """Loss (a sum), -log P of each target (B,), sums to be logged."""
        inputs, target = sample["net_input"], sample["target"]  # (B, T)
        labels = inputs["pair"].endswith(f"-{model.label_lang}")
        logits = model(**inputs)[0]  # (B, T, N)
        losses, _ = label_smoothed_cross_entropy(
            logits.reshape(-1, logits.size(-1)), target.reshape(-1), 0.0, self.padding_idx
        )
        nll, sentences = losses.sum(), target.size(0)
        # of the label's two positions the second, the end symbol, is certain
        loss, count = nll, sentences if labels else sample["ntokens"]
        if labels and self.label_weight == "text":
            positions = inputs["src_tokens"].size(1)
            loss, count = positions * nll, positions * sentences
        log = {"loss": loss.detach(), "text_nll": nll.detach() * (not labels)}
        log["wrong"] = logits[:, 0].argmax(dim=1).ne(target[:, 0]).sum() * labels
        log.update(ntokens=sample["ntokens"], nsentences=sentences, sample_size=count)
        log.update(labels=sentences * labels, text_tokens=sample["ntokens"] * (not labels))
        return loss, losses.view_as(target).sum(dim=1), log

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        total = {
            name: sum(log.get(name, 0) for log in logging_outputs)
            for name in ("loss", "sample_size", "wrong", "labels", "text_nll", "text_tokens")
        }
        if total["sample_size"]:
            loss = total["loss"] / total["sample_size"] / math.log(2)
            metrics.log_scalar("loss", loss, total["sample_size"], round=4)
        if total["labels"]:
            error = 100.0 * total["wrong"] / total["labels"]
            metrics.log_scalar("error", error, total["labels"], round=2)
        if total["text_tokens"]:
            nll = total["text_nll"] / total["text_tokens"]
            metrics.log_scalar("text_nll", nll, total["text_tokens"], round=4)
            metrics.log_derived("ppl", perplexity)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


class DualSupervisedLabels(DualityGap, DualLabelCrossEntropy):
    """Dual supervised learning of a text x and its label y, of N tokens with the end symbol::

        f:  -log P(y|x; f) + lambda * l_duality      g:  -log P(x|y; g) + lambda * l_duality
        l_duality = (log P(x) + log P(y|x; f) - log P(y) - log P(x|y; g))^2 / N

    Each model minimises its own line, as in Algorithm 1 of Xia et al. (2017), the first counted by
    ``label_weight``. P(y) is the share of the label.

    Deviation: the l_duality of Xia et al. is not divided by N, and each model has a lambda of its
    own. Of a text of hundreds of tokens the gap is tens of nats, and without N the classifier would
    learn from nothing else. In one sum of all terms the gap would hardly move the classifier, whose
    loss counts as much as that of N tokens.
    """

    def __init__(
        self, task, label_weight, weight: float = 0.0, marginals: Optional[Marginals] = None
    ):
        super().__init__(task, label_weight)
        self.weight, self.marginals = weight, marginals

    def penalties(self, f: Part, g: Part) -> Tuple[Tensor, List[Tensor]]:
        """l_duality (B,), and what is added to the losses of both directions.

        The gradient of each reaches its own direction alone; the other's likelihood is a number.
        """
        penalties = []
        for own, other in ((f, g), (g, f)):
            fixed = other.log_likelihood.detach()
            gap = duality_gap(other.log_marginal, own.log_likelihood, own.log_marginal, fixed)
            # a label has two tokens with its end, a text at least as many
            l_duality = gap.square() / own.tokens.maximum(other.tokens)  # (B,)
            labels = own.log["labels"]
            counted = own.log["sample_size"] / labels if labels else 1
            penalties.append(self.weight * counted * l_duality.sum())
        return l_duality, penalties


def perplexity(meters) -> float:
    """exp of the mean -log P(x_t | x_<t, y), in nats."""
    return round(math.exp(min(float(meters["text_nll"].avg), 100)), 2)
