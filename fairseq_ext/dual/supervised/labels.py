"""The criterion ``dual_supervised`` where one side holds labels.

Dimensions: B pairs of a text and its label.
"""

from typing import List, Optional, Tuple

from fairseq.tasks import FairseqTask
from torch import Tensor

from ..lstm_classifier.criterion import DualLabelCrossEntropy
from .duality import DirectionTerms, DualityGap, duality_gap
from .marginals import Marginals


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
        self,
        task: FairseqTask,
        label_weight: str,
        weight: float = 0.0,
        marginals: Optional[Marginals] = None,
    ):
        super().__init__(task, label_weight)
        self.weight, self.marginals = weight, marginals

    def penalties(self, f: DirectionTerms, g: DirectionTerms) -> Tuple[Tensor, List[Tensor]]:
        """Return l_duality (B,), and what is added to the losses of both directions.

        The gradient of each penalty reaches its direction alone; the likelihood of the other
        direction is a constant in it.
        """
        # a label has two tokens with its end, a text at least as many
        count = f.tokens.maximum(g.tokens)  # N, (B,)
        penalties = []
        for trained, other in ((f, g), (g, f)):
            constant = other.log_likelihood.detach()
            gap = duality_gap(
                other.log_marginal, trained.log_likelihood, trained.log_marginal, constant
            )
            l_duality = gap.square() / count  # (B,), in both directions the same but for rounding
            # the term counts as much as the loss of its direction: see ``label_weight``
            labels = trained.log["labels"]
            counted = trained.log["sample_size"] / labels if labels else 1
            penalties.append(self.weight * counted * l_duality.sum())
        return l_duality, penalties
