"""The label-smoothed cross entropy of fairseq, in less memory."""

from typing import Any, Dict, Tuple

from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.models import BaseFairseqModel
from torch import Tensor

from .losses import label_smoothed_cross_entropy


@register_criterion(
    "chunked_label_smoothed_cross_entropy", dataclass=LabelSmoothedCrossEntropyCriterionConfig
)
class ChunkedLabelSmoothedCrossEntropy(LabelSmoothedCrossEntropyCriterion):
    """Same options, values and gradients as ``label_smoothed_cross_entropy``.

    Works with every model whose output is a tensor of logits. Models with an adaptive softmax
    have no such tensor and are refused: stock ``adaptive_loss`` is for them.
    """

    def compute_loss(
        self,
        model: BaseFairseqModel,
        net_output: Tuple,
        sample: Dict[str, Any],
        reduce: bool = True,
    ) -> Tuple[Tensor, Tensor]:
        """Return the loss and the nll in nats: sums over the batch (``reduce``) or (N,) each.

        ValueError for a model with an adaptive softmax, whose output would pass for logits where it
        is as wide as the dictionary or wider.
        """
        if getattr(getattr(model, "decoder", None), "adaptive_softmax", None) is not None:
            raise ValueError(
                "--adaptive-softmax-cutoff with a criterion of logits, which the model does not "
                "have; allowed: --criterion adaptive_loss, or without an adaptive softmax"
            )
        logits = net_output[0]  # (B, T, V)
        target = model.get_targets(sample, net_output)  # (B, T)
        if self.ignore_prefix_size > 0:
            logits = logits[:, self.ignore_prefix_size :]
            target = target[:, self.ignore_prefix_size :]
        loss, nll_loss = label_smoothed_cross_entropy(
            logits.reshape(-1, logits.size(-1)),
            target.reshape(-1),
            self.eps,
            self.padding_idx,
            # a subclass may have other uses for the logits
            overwrite=type(self) is ChunkedLabelSmoothedCrossEntropy,
        )
        if reduce:
            return loss.sum(), nll_loss.sum()
        return loss, nll_loss
