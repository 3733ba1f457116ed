"""The criterion ``dual_label_cross_entropy``: both losses of the asymmetric setting, and scores.

Dimensions: B sentences, T positions, N entries of a dictionary.
"""

import math
from dataclasses import dataclass, field

from fairseq import metrics
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import ChoiceEnum, FairseqDataclass

from ..common.losses import label_smoothed_cross_entropy


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
        return loss, count, log

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


def perplexity(meters) -> float:
    """exp of the mean -log P(x_t | x_<t, y), in nats."""
    return round(math.exp(min(float(meters["text_nll"].avg), 100)), 2)
