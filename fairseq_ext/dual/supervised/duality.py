"""The duality gap of sentence pairs, for both criterions of dual supervised learning.

Xia, Qin, Chen, Bian, Yu and Liu (2017), *Dual Supervised Learning*, the baseline of the paper::

    P(x) P(y|x; f) = P(y) P(x|y; g)   wherever f and g are perfect, so minimise over the pairs
    -log P(y|x; f) - log P(x|y; g) + lambda * l_duality
    l_duality = (log P(x) + log P(y|x; f) - log P(y) - log P(x|y; g))^2

with P(x) and P(y) by models that stay as they are.

Dimensions: B sentence pairs.
"""

import math
from functools import partial
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from fairseq import metrics
from fairseq.criterions import FairseqCriterion
from fairseq.models import BaseFairseqModel
from torch import Tensor

from ...common.log_sums import logged_sum
from ...streams.language_pair import target_of
from .marginals import Marginals


def duality_gap(log_x: Any, log_y_x: Any, log_y: Any, log_x_y: Any) -> Any:
    """Return log P(x) + log P(y|x; f) - log P(y) - log P(x|y; g), (B,) in nats, as all terms."""
    return log_x + log_y_x - log_y - log_x_y


def check_weight(weight: float) -> None:
    """Raise ValueError unless lambda is a number of at least 0."""
    if not 0 <= weight < math.inf:
        raise ValueError(f"--dsl-weight {weight}: allowed: 0 or more")


class DirectionTerms(NamedTuple):
    """The terms of one direction of a batch, with the pairs in the order of their numbers.

    loss: of this direction, a sum. log_likelihood, log_marginal: of its targets, (B,) each, in
    nats. tokens: of its targets, (B,). log: sums to be logged.
    """

    loss: Tensor
    log_likelihood: Tensor
    log_marginal: Tensor
    tokens: Tensor
    log: Dict[str, Any]


class DualityGap(FairseqCriterion):
    """Adds lambda * l_duality to a criterion that is given both directions of the same pairs.

    A subclass also derives from a criterion for one direction, after this class, and may have
    ``score`` from it. Logged beside that criterion's values: ``l_duality``, the mean over pairs,
    and ``lm_nll_loss``, -log P of the texts in bits per token.

    weight: lambda; 0 leaves the plain criterion.
    marginals: log P(x) and log P(y); None for evaluation only, and where ``weight`` is 0.
    """

    weight: float
    marginals: Optional[Marginals]
    padding_idx: int

    def forward(
        self, model: BaseFairseqModel, sample: Dict[str, Any], reduce: bool = True
    ) -> Tuple[Any, Any, Dict[str, Any]]:
        """Return the loss and what is logged, of one direction or of a pair and its reverse.

        One direction is a sample, for the criterion that this class is put before. A pair and its
        reverse are {pair: sample}; of them the result is the loss (the sum over both), the sample
        size and {pair: sums to be logged}; ValueError for them without ``reduce``.
        """
        if "net_input" in sample:
            return super().forward(model, sample, reduce)
        if not reduce:
            raise ValueError(
                "criterion dual_supervised: reduce=False with a pair and its reverse, whose "
                "penalty belongs to no token; allowed: a sample of one direction"
            )
        # both forward passes come first: the gap ties the directions' gradients together
        directions = [self.direction_terms(model, pair, part) for pair, part in sample.items()]
        l_duality, penalties = self.penalties(*directions)
        # the loss that is logged is the objective, penalties included
        for terms, penalty in zip(directions, penalties):
            terms.log["l_duality"] = l_duality.sum().detach()
            terms.log["loss"] = terms.log["loss"] + penalty.detach()
        loss = sum(terms.loss for terms in directions) + sum(penalties)
        size = sum(terms.log["sample_size"] for terms in directions)
        return loss, size, {pair: terms.log for pair, terms in zip(sample, directions)}

    def score(
        self, model: BaseFairseqModel, sample: Dict[str, Any]
    ) -> Tuple[Tensor, Tensor, Dict[str, Any]]:
        """Return the loss of a direction (a sum), -log P of each target (B,) and what is logged.

        -log P has a gradient.
        """
        return super().score(model, sample)

    def penalties(self, f: DirectionTerms, g: DirectionTerms) -> Tuple[Tensor, List[Tensor]]:
        """Return l_duality (B,), and what is added to both losses: half of the term each."""
        # the targets of f are y, those of g are x: their marginals are P(y) and P(x)
        gap = duality_gap(g.log_marginal, f.log_likelihood, f.log_marginal, g.log_likelihood)
        l_duality = gap.square()  # (B,)
        # half for each direction, so that both together have lambda * l_duality
        half = self.weight * l_duality.sum() / 2
        return l_duality, [half, half]

    def direction_terms(
        self, model: BaseFairseqModel, pair: str, sample: Dict[str, Any]
    ) -> DirectionTerms:
        """Return the terms of a direction, with the sentences in the order of their numbers."""
        assert self.marginals is not None  # the task couples directions only with a weight
        loss, nll, log = self.score(model, sample)
        target, lang = sample["target"], target_of(pair)
        prev_tokens = sample["net_input"]["prev_output_tokens"]
        log_y = self.marginals(lang, prev_tokens, target, self.padding_idx)  # (B,)
        # the share of a label is no language model's: it stays out of lm_nll_loss
        learnt = self.marginals.is_learnt(lang)
        log["lm_nll_loss"], log["lm_tokens"] = -log_y.sum() * learnt, sample["ntokens"] * learnt
        # fairseq orders a batch by the lengths of its sources, which differ by direction
        tokens, order = target.ne(self.padding_idx).sum(dim=1), sample["id"].argsort()
        # -nll is log P, with a gradient; all by the pair's number, so that rows of f and g agree
        return DirectionTerms(loss, -nll[order], log_y[order], tokens[order], log)

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        """Log the values of the criterion for one direction and, if there are any, of the gap."""
        super().reduce_metrics(logging_outputs)
        total = partial(logged_sum, logging_outputs)
        if any("l_duality" in log for log in logging_outputs):
            # both directions log the gap and their sentences: the ratio is the mean over pairs
            pairs, tokens = total("nsentences"), total("lm_tokens")
            metrics.log_scalar("l_duality", total("l_duality") / pairs, pairs, round=3)
            if tokens:
                bits = total("lm_nll_loss") / tokens / math.log(2)  # fairseq logs in base 2
                metrics.log_scalar("lm_nll_loss", bits, tokens, round=3)
