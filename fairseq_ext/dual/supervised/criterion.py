"""The criterion ``dual_supervised``: both likelihoods and the duality gap of every pair.

The equations are in duality.py. Two sentences are one thing, a text and its label another: the
criterion of the latter, ``DualSupervisedLabels``, is in labels.py.

Dimensions: B sentence pairs, T target positions of a direction, V vocabulary.
"""

import logging
from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Protocol, Tuple, Union, runtime_checkable

from fairseq.criterions import register_criterion
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from torch import Tensor

from ...common.criterion import ChunkedLabelSmoothedCrossEntropy
from ...common.losses import label_smoothed_cross_entropy
from ..lstm_classifier.criterion import DualLabelCrossEntropyConfig, refuse_sentence_avg
from .duality import DualityGap, check_weight
from .labels import DualSupervisedLabels
from .marginals import OPTION, Marginals

logger = logging.getLogger(__name__)


@dataclass
class DualSupervisedConfig(DualLabelCrossEntropyConfig):
    """Options of ``dual_supervised``; ``label_weight`` is for a text and its label alone."""

    dsl_weight: float = field(
        default=0.01,
        metadata={"help": "lambda, weight of the squared duality gap (Xia et al. 2017b: 0.01)"},
    )
    language_models: Optional[str] = field(
        default=None,
        metadata={
            "help": "checkpoints of log P for each language, e.g. de=lm.de.pt,en=lm.en.pt: models "
            "of fairseq's task language_modeling with the run's dictionaries; labels need none, "
            "and with --dsl-weight 0 no language needs one"
        },
    )
    label_smoothing: float = field(
        default=0.0,
        metadata={
            "help": "epsilon of the label smoothing of the likelihoods; the duality gap has none"
        },
    )


@runtime_checkable
class CouplesDirections(Protocol):
    """A task whose updates can hold both directions of the same pairs."""

    label_lang: Optional[str]
    from_checkpoint: bool

    def couple_directions(self) -> None:
        """Give the criterion a pair and its reverse in one call, from now on."""

    def pair_dictionaries(self) -> Dict[str, Dictionary]:
        """Return {lang: dictionary} of the languages that are trained."""

    def max_positions(self) -> Tuple[int, int]:
        """Return the longest source and target in tokens."""


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
        task: FairseqTask,
        weight: float,
        marginals: Optional[Marginals] = None,
        label_smoothing: float = 0.0,
        sentence_avg: bool = False,
    ):
        super().__init__(task, sentence_avg, label_smoothing)
        self.weight, self.marginals = weight, marginals

    @classmethod
    def build_criterion(
        cls, cfg: DualSupervisedConfig, task: FairseqTask
    ) -> Union["DualSupervisedCriterion", DualSupervisedLabels]:
        """Return the criterion, where a side holds labels a ``DualSupervisedLabels``.

        Reads the language models too, unless the task's model came from a checkpoint. Raises
        ValueError, naming the option, for bad values and for a run whose updates do not hold both
        directions of the same pairs. Warns of language models that lambda 0 leaves unread: lambda
        may be what several runs of one command differ in.
        """
        check_weight(cfg.dsl_weight)
        if not isinstance(task, CouplesDirections):
            raise ValueError(
                f"--criterion dual_supervised: --task {task.cfg._name} does not train both "
                "directions of a pair; allowed: dual_translation"
            )
        # the classifier scores labels alone, and smoothing would need the scores of all words
        if task.label_lang and cfg.label_smoothing:
            raise ValueError(f"--label-smoothing {cfg.label_smoothing}: allowed with labels: 0")
        if task.label_lang:
            refuse_sentence_avg(cfg)
        elif str(cfg.label_weight) != "text":
            raise ValueError(
                f"--label-weight {cfg.label_weight}: no side of the pairs holds labels; allowed: "
                "leave it out"
            )
        marginals = None
        # evaluation of a trained model needs no gap, and the files may not exist any more
        if cfg.dsl_weight and not task.from_checkpoint:
            # every update then has both directions, of which the gap is made
            task.couple_directions()
            length = max(task.max_positions())
            dictionaries = task.pair_dictionaries()
            marginals = Marginals.load(cfg.language_models, dictionaries, length, task.label_lang)
        elif cfg.language_models and not task.from_checkpoint:
            logger.warning(
                f"{OPTION} {cfg.language_models} does nothing with --dsl-weight 0: there is no "
                "duality gap, and the files are not read"
            )
        if task.label_lang:
            return DualSupervisedLabels(task, cfg.label_weight, cfg.dsl_weight, marginals)
        return cls(task, cfg.dsl_weight, marginals, cfg.label_smoothing, cfg.sentence_avg)

    def score(
        self, model: BaseFairseqModel, sample: Dict[str, Any]
    ) -> Tuple[Tensor, Tensor, Dict[str, Any]]:
        """Return the loss (a sum), -log P of each target (B,) and sums to be logged.

        -log P is not smoothed and has a gradient.
        """
        output, target = model(**sample["net_input"]), sample["target"]
        loss, nll = self.compute_loss(model, output, sample, reduce=False)  # (B*T,)
        likelihood = loss  # with a gradient, which nll does not have
        # with smoothing the loss is no likelihood, and the gap needs log P itself
        if self.eps:
            flat = output[0].flatten(0, 1), target.flatten()
            # epsilon 0; this pass over the logits is not needed otherwise
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
