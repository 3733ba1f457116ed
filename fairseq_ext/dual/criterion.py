"""The criterion ``dual_supervised``: both likelihoods and the duality gap of every pair.

The equations are in duality.py. Two sentences are one thing, a text and its label another: the
criterion of the latter, ``DualSupervisedLabels``, is in lstm_criterion.py.

Dimensions: B sentence pairs, T target positions of a direction, V vocabulary.
"""

from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Tuple

from fairseq.criterions import register_criterion
from omegaconf import II
from torch import Tensor

from ..common.criterion import ChunkedLabelSmoothedCrossEntropy
from ..common.losses import label_smoothed_cross_entropy
from .duality import DualityGap, check_weight
from .lstm_criterion import DualLabelCrossEntropyConfig, DualSupervisedLabels
from .marginals import Marginals


@dataclass
class DualSupervisedConfig(DualLabelCrossEntropyConfig):
    dsl_weight: float = field(
        default=0.01,
        metadata={"help": "lambda, weight of the squared duality gap (Xia et al. 2017b: 0.01)"},
    )
    language_models: Optional[str] = field(
        default=None,
        metadata={
            "help": "checkpoints of log P for each language, e.g. de=lm.de.pt,en=lm.en.pt: of "
            "fairseq's task language_modeling, with the run's dictionaries; labels need none, and "
            "nothing does with --dsl-weight 0"
        },
    )
    label_smoothing: float = field(
        default=0.0, metadata={"help": "epsilon, of the likelihoods; the gap has none"}
    )
    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("dual_supervised", dataclass=DualSupervisedConfig)
class DualSupervisedCriterion(DualityGap, ChunkedLabelSmoothedCrossEntropy):
    """-log P(y|x; f) - log P(x|y; g) + lambda * l_duality, of both directions of the same pairs.

    For one direction alone, as in validation, ``chunked_label_smoothed_cross_entropy``.
    The likelihood of the gap is not smoothed.

    Args:
        task: ``dual_translation``.
        weight: lambda.
        marginals: of the gap.
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

        Where a side holds labels, the criterion is ``DualSupervisedLabels``. ValueError, naming
        the option, for bad values and for a run whose updates do not hold both directions of the
        same pairs.
        """
        check_weight(cfg.dsl_weight)
        if not hasattr(task, "couple_directions"):
            raise ValueError(
                f"--criterion dual_supervised: --task {task.cfg._name} does not train both "
                "directions of a pair; allowed: dual_translation"
            )
        if task.label_lang and cfg.label_smoothing:
            raise ValueError(f"--label-smoothing {cfg.label_smoothing}: allowed with labels: 0")
        marginals = None
        if cfg.dsl_weight and not task.from_checkpoint:
            task.couple_directions()
            length = max(task.max_positions())
            dictionaries = task.pair_dictionaries()
            marginals = Marginals.load(cfg.language_models, dictionaries, length, task.label_lang)
        if task.label_lang:
            return DualSupervisedLabels(task, cfg.label_weight, cfg.dsl_weight, marginals)
        return cls(task, cfg.dsl_weight, marginals, cfg.label_smoothing, cfg.sentence_avg)

    def score(self, model, sample) -> Tuple[Tensor, Tensor, Dict[str, Any]]:
        """Loss (a sum), -log P of each target without smoothing (B,), sums to be logged."""
        output, target = model(**sample["net_input"]), sample["target"]
        loss, nll = self.compute_loss(model, output, sample, reduce=False)  # (B*T,)
        likelihood = loss  # with a gradient, which nll does not have
        if self.eps:
            flat = output[0].flatten(0, 1), target.flatten()
            likelihood, _ = label_smoothed_cross_entropy(*flat, 0.0, self.padding_idx)
        loss = loss.sum()
        log = {
            "loss": loss.detach(),
            "nll_loss": nll.sum(),
            "ntokens": sample["ntokens"],
            "nsentences": target.size(0),
            "sample_size": target.size(0) if self.sentence_avg else sample["ntokens"],
        }
        return loss, likelihood.view_as(target).sum(dim=1), log
