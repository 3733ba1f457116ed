"""The criterion ``dual_supervised``: both likelihoods and the duality gap of every pair.

Xia, Qin, Chen, Bian, Yu and Liu (2017), *Dual Supervised Learning*, the baseline of the paper::

    P(x) P(y|x; f) = P(y) P(x|y; g)   wherever f and g are perfect, so minimise over the pairs
    -log P(y|x; f) - log P(x|y; g) + lambda * l_duality
    l_duality = (log P(x) + log P(y|x; f) - log P(y) - log P(x|y; g))^2

with P(x) and P(y) by language models that stay as they are.

Dimensions: B sentence pairs, T target positions of a direction, V vocabulary.
"""

import math
from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Tuple

from fairseq import metrics
from fairseq.criterions import register_criterion
from fairseq.dataclass import FairseqDataclass
from omegaconf import II
from torch import Tensor

from ..common.criterion import ChunkedLabelSmoothedCrossEntropy
from ..common.losses import label_smoothed_cross_entropy
from .marginals import Marginals


@dataclass
class DualSupervisedConfig(FairseqDataclass):
    dsl_weight: float = field(
        default=0.01,
        metadata={"help": "lambda, weight of the squared duality gap (Xia et al. 2017b: 0.01)"},
    )
    language_models: Optional[str] = field(
        default=None,
        metadata={
            "help": "checkpoints of log P for each language, e.g. de=lm.de.pt,en=lm.en.pt: of "
            "fairseq's task language_modeling, with the run's dictionaries; not needed with "
            "--dsl-weight 0"
        },
    )
    label_smoothing: float = field(
        default=0.0, metadata={"help": "epsilon, of the likelihoods; the gap has none"}
    )
    sentence_avg: bool = II("optimization.sentence_avg")


def duality_gap(log_x: Any, log_y_x: Any, log_y: Any, log_x_y: Any) -> Any:
    """log P(x) + log P(y|x; f) - log P(y) - log P(x|y; g) of sentence pairs, (B,) each, in nats."""
    return log_x + log_y_x - log_y - log_x_y


def check_weight(weight: float) -> None:
    """Raise ValueError unless lambda is a number of at least 0."""
    if not 0 <= weight < math.inf:
        raise ValueError(f"--dsl-weight {weight}: allowed: 0 or more")


@register_criterion("dual_supervised", dataclass=DualSupervisedConfig)
class DualSupervisedCriterion(ChunkedLabelSmoothedCrossEntropy):
    """-log P(y|x; f) - log P(x|y; g) + lambda * l_duality, of both directions of the same pairs.

    For one direction alone, as in validation, ``chunked_label_smoothed_cross_entropy``. Logged
    beside its values in training: ``l_duality``, the mean over pairs in nats^2, and
    ``lm_nll_loss``, -log P(y) in bits per token. The likelihood of the gap is not smoothed.

    Args:
        task: ``dual_translation``.
        weight: lambda; 0 leaves the plain criterion.
        marginals: log P(x) and log P(y); None for evaluation only, and where ``weight`` is 0.
        label_smoothing: epsilon, of both likelihoods.
        sentence_avg: divide the gradient by sentences instead of tokens.
    """

    def __init__(
        self,
        task,
        weight: float,
        marginals: Optional[Marginals] = None,
        label_smoothing: float = 0.0,
        sentence_avg: bool = False,
    ):
        super().__init__(task, sentence_avg, label_smoothing)
        self.weight, self.marginals = weight, marginals

    @classmethod
    def build_criterion(cls, cfg: DualSupervisedConfig, task):
        """Read the language models too, unless the task's model came from a checkpoint.

        ValueError, naming the option, for bad values and for a run whose updates do not hold both
        directions of the same pairs.
        """
        check_weight(cfg.dsl_weight)
        if not hasattr(task, "couple_directions"):
            raise ValueError(
                f"--criterion dual_supervised: --task {task.cfg._name} does not train both "
                "directions of a pair; allowed: dual_translation"
            )
        marginals = None
        if cfg.dsl_weight and not task.from_checkpoint:
            task.couple_directions()
            length = max(task.max_positions())
            marginals = Marginals.load(cfg.language_models, task.pair_dictionaries(), length)
        return cls(task, cfg.dsl_weight, marginals, cfg.label_smoothing, cfg.sentence_avg)

    def forward(self, model, sample, reduce=True):
        """Of one direction as in the base class; of {pair: sample}, a pair and its reverse:

        Returns:
            loss (sum over both), sample size, {pair: sums to be logged}. Half of
            lambda * l_duality is counted to each direction's ``loss``.
        """
        if "net_input" in sample:
            return super().forward(model, sample, reduce)
        terms = [self.direction(model, pair, part) for pair, part in sample.items()]
        (f_loss, log_y_x, log_y, f_log), (g_loss, log_x_y, log_x, g_log) = terms
        l_duality = duality_gap(log_x, log_y_x, log_y, log_x_y).square().sum()
        penalty = self.weight * l_duality
        for log in (f_log, g_log):
            log["l_duality"] = l_duality.detach()
            log["loss"] = log["loss"] + penalty.detach() / 2
        size = f_log["sample_size"] + g_log["sample_size"]
        return f_loss + g_loss + penalty, size, dict(zip(sample, (f_log, g_log)))

    def direction(self, model, pair: str, part) -> Tuple[Tensor, Tensor, Tensor, Dict[str, Any]]:
        """Of a direction -> its loss, log P(y|x) (B,), log P(y) (B,), sums to be logged.

        fairseq orders a batch by the lengths of its sources: here the sentences come in the order
        of their numbers, which is the same in both directions.
        """
        output, target = model(**part["net_input"]), part["target"]
        loss, nll = self.compute_loss(model, output, part, reduce=False)  # (B*T,)
        likelihood = loss  # with a gradient, which nll does not have
        if self.eps:
            flat = output[0].flatten(0, 1), target.flatten()
            likelihood, _ = label_smoothed_cross_entropy(*flat, 0.0, self.padding_idx)
        log_y_x = -likelihood.view_as(target).sum(dim=1)  # (B,)
        prev_tokens = part["net_input"]["prev_output_tokens"]
        log_y = self.marginals(pair.split("-")[1], prev_tokens, target, self.padding_idx)  # (B,)
        loss, order = loss.sum(), part["id"].argsort()
        log = {
            "loss": loss.detach(),
            "nll_loss": nll.sum(),
            "lm_nll_loss": -log_y.sum(),
            "ntokens": part["ntokens"],
            "nsentences": target.size(0),
            "sample_size": target.size(0) if self.sentence_avg else part["ntokens"],
        }
        return loss, log_y_x[order], log_y[order], log

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        """Log the base class's values and, where there are any, the terms of the gap."""
        super().reduce_metrics(logging_outputs)

        def total(name):
            return sum(log.get(name, 0) for log in logging_outputs)

        if any("l_duality" in log for log in logging_outputs):
            pairs, tokens = total("nsentences"), total("ntokens")
            metrics.log_scalar("l_duality", total("l_duality") / pairs, pairs, round=3)
            bits = total("lm_nll_loss") / tokens / math.log(2)
            metrics.log_scalar("lm_nll_loss", bits, tokens, round=3)
