"""The criterion of the asymmetric setting: both losses, error rate and perplexity.

Dimensions: B sentences, T positions, N entries of a dictionary.
"""

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from fairseq import metrics
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.meters import AverageMeter
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from omegaconf import II
from torch import Tensor

from ...common.log_sums import logged_sum
from ...common.losses import label_smoothed_cross_entropy


@dataclass
class DualLabelCrossEntropyConfig(FairseqDataclass):
    """The option of ``dual_label_cross_entropy``: how much a label counts beside a text."""

    label_weight: ChoiceEnum(("text", "token")) = field(
        default="text",
        metadata={
            "help": "weight of -log P(label|text): text gives it the mean number of tokens of the "
            "batch's texts, so that each direction contributes the mean of its loss; token gives "
            "it the weight of one token, which is the plain sum over pairs"
        },
    )
    sentence_avg: bool = II("optimization.sentence_avg")


def refuse_sentence_avg(cfg: DualLabelCrossEntropyConfig) -> None:
    """Raise ValueError for --sentence-avg, which would count labels and texts alike."""
    if cfg.sentence_avg:
        raise ValueError(
            "--sentence-avg: with labels --label-weight says what a sentence counts; allowed: "
            "leave it out"
        )


@register_criterion("dual_label_cross_entropy", dataclass=DualLabelCrossEntropyConfig)
class DualLabelCrossEntropy(FairseqCriterion):
    """-log P(label | text; f) or -log P(text | label; g), by the direction of the batch.

    Logged (Sec. 4.2):

    - ``loss`` in bits, per label or per token of a text; of both directions together their mean,
      counted by ``label_weight``;
    - of text-label ``error``, the error rate in percent;
    - of label-text ``ppl``, exp(-sum log P(x|y) / sum N), where the end symbol belongs to x and is
      counted in N.
    """

    def __init__(self, task: FairseqTask, label_weight: str):
        super().__init__(task)
        self.label_weight = str(label_weight)

    @classmethod
    def build_criterion(
        cls, cfg: DualLabelCrossEntropyConfig, task: FairseqTask
    ) -> "DualLabelCrossEntropy":
        """Return the criterion; ValueError where no side holds labels, and for --sentence-avg."""
        # tasks of fairseq have no such attribute
        if not getattr(task, "label_lang", None):
            raise ValueError(
                "--criterion dual_label_cross_entropy: the model has no side of labels; allowed: "
                "--task dual_translation --arch dual_lstm_classifier or "
                "dual_supervised_lstm_classifier"
            )
        refuse_sentence_avg(cfg)
        return cls(task, cfg.label_weight)

    def forward(
        self, model: BaseFairseqModel, sample: Dict[str, Any], reduce: bool = True
    ) -> Tuple[Tensor, Union[int, Tensor], Dict[str, Any]]:
        """Return the loss, what it is divided by, and sums to be logged.

        The loss is a sum or, without ``reduce``, (B,), in which a label has its weight.
        """
        loss, nll, log = self.score(model, sample)
        if not reduce:
            loss = nll * (log["sample_size"] / log["nsentences"]) if log["labels"] else nll
        return loss, log["sample_size"], log

    def score(
        self, model: BaseFairseqModel, sample: Dict[str, Any]
    ) -> Tuple[Tensor, Tensor, Dict[str, Any]]:
        """Return the loss (a sum), -log P of each target (B,) and sums to be logged."""
        inputs, target = sample["net_input"], sample["target"]  # (B, T)
        is_label = inputs["pair"].endswith(f"-{model.label_lang}")
        logits = model(**inputs)[0]  # (B, T, N)
        losses, _ = label_smoothed_cross_entropy(  # (B T,)
            logits.reshape(-1, logits.size(-1)), target.reshape(-1), 0.0, self.padding_idx
        )
        nll, sentences = losses.sum(), target.size(0)
        # of the label's two positions the second, the end symbol, is certain
        loss, count = nll, sentences if is_label else sample["ntokens"]
        if self.label_weight == "text":
            # The trainer divides the sum of both directions by the sum of both counts. Each
            # direction has the mean of its own loss if both count the tokens of the texts.
            text = inputs["src_tokens"] if is_label else target
            count = text.ne(self.padding_idx).sum()  # a tensor: the host does not wait for it
            loss = nll * count / sentences if is_label else nll
        log = {
            "loss": loss.detach(),
            "ntokens": sample["ntokens"],
            "nsentences": sentences,
            "sample_size": count,
            # the sums of the direction that the batch is not of are zero
            "labels": sentences * is_label,
            "label_nll": nll.detach() * is_label,
            "label_weight": count * is_label,
            # the first position holds the label
            "wrong": logits[:, 0].argmax(dim=1).ne(target[:, 0]).sum() * is_label,
            "text_tokens": sample["ntokens"] * (not is_label),
            "text_nll": nll.detach() * (not is_label),
        }
        return loss, losses.view_as(target).sum(dim=1), log

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        """Log loss, error rate and perplexity of the batches of all workers."""
        total = partial(logged_sum, logging_outputs)
        labels, tokens = total("labels"), total("text_tokens")
        if labels or tokens:  # the mean over all that is seen, however it is cut into batches
            metrics.log_derived("loss", mean_loss)
        if labels:
            metrics.log_scalar("_label_nll", total("label_nll") / labels, labels)
            metrics.log_scalar("_label_weight", total("label_weight") / labels, labels)
            metrics.log_scalar("error", 100.0 * total("wrong") / labels, labels, round=2)
        if tokens:
            metrics.log_scalar("text_nll", total("text_nll") / tokens, tokens, round=4)
            metrics.log_derived("ppl", perplexity)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """True: workers may exchange sums in place of each batch's values."""
        return True


def perplexity(meters: Mapping[str, AverageMeter]) -> Optional[float]:
    """Return exp of the mean -log P(x_t | x_<t, y) in nats, at most exp(100).

    None, which is not logged, where no text was seen since the last line of the log.
    """
    mean = meters["text_nll"].avg
    # of a model at its start the exponent is beyond any float
    return None if mean is None else round(math.exp(min(float(mean), 100)), 2)


def mean_loss(meters: Mapping[str, AverageMeter]) -> float:
    """Return the mean loss in bits: of labels, of tokens of texts, or of both.

    Both are counted by ``label_weight``.
    """
    label, text = meters.get("_label_nll"), meters.get("text_nll")
    sums, counts = [0.0], [0.0]
    # fairseq keeps the meters of a direction that has left, and empties them
    if label is not None and label.count:
        counts.append(float(meters["_label_weight"].sum))
        # mean times weight: the sum that --label-weight counts it with
        sums.append(float(label.avg) * counts[-1])
    if text is not None and text.count:
        counts.append(float(text.count))
        sums.append(float(text.sum))
    # one ratio over both directions, as the trainer's own division
    return round(sum(sums) / sum(counts) / math.log(2), 4) if any(counts) else math.nan
