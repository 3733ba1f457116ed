"""What the criterions of dual supervised learning share: the duality gap of sentence pairs.

Xia, Qin, Chen, Bian, Yu and Liu (2017), *Dual Supervised Learning*, the baseline of the paper::

    P(x) P(y|x; f) = P(y) P(x|y; g)   wherever f and g are perfect, so minimise over the pairs
    -log P(y|x; f) - log P(x|y; g) + lambda * l_duality
    l_duality = (log P(x) + log P(y|x; f) - log P(y) - log P(x|y; g))^2

with P(x) and P(y) by models that stay as they are.

Dimensions: B sentence pairs.
"""

import math
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from fairseq import metrics
from torch import Tensor

from .marginals import Marginals


def duality_gap(log_x: Any, log_y_x: Any, log_y: Any, log_x_y: Any) -> Any:
    """log P(x) + log P(y|x; f) - log P(y) - log P(x|y; g) of sentence pairs, (B,) each, in nats."""
    return log_x + log_y_x - log_y - log_x_y


def check_weight(weight: float) -> None:
    """Raise ValueError unless lambda is a number of at least 0."""
    if not 0 <= weight < math.inf:
        raise ValueError(f"--dsl-weight {weight}: allowed: 0 or more")


class Part(NamedTuple):
    """One direction of a batch of pairs; the pairs in the order of their numbers.

    loss: its own, a sum. log_likelihood, log_marginal: of its targets, (B,) each, in nats.
    tokens: of its targets, (B,). log: sums to be logged.
    """

    loss: Tensor
    log_likelihood: Tensor
    log_marginal: Tensor
    tokens: Tensor
    log: Dict[str, Any]


class DualityGap:
    """Put before a criterion that offers

        score(model, sample) -> its loss (a sum), -log P of each target (B,) with a gradient, log

    it adds lambda * l_duality where it is given both directions of the same pairs. Logged beside
    the criterion's values: ``l_duality``, the mean over pairs, and ``lm_nll_loss``, -log P of the
    texts in bits per token.

    weight: lambda; 0 leaves the plain criterion.
    marginals: log P(x) and log P(y); None for evaluation only, and where ``weight`` is 0.
    """

    weight: float
    marginals: Optional[Marginals]
    padding_idx: int

    def forward(self, model, sample, reduce=True):
        """Of one direction as in the base class; of {pair: sample}, a pair and its reverse:

        Returns:
            loss (sum over both), sample size, {pair: sums to be logged}.
        """
        if "net_input" in sample:
            return super().forward(model, sample, reduce)
        parts = [self.part(model, pair, part) for pair, part in sample.items()]
        l_duality, penalties = self.penalties(*parts)
        for part, penalty in zip(parts, penalties):
            part.log["l_duality"] = l_duality.sum().detach()
            part.log["loss"] = part.log["loss"] + penalty.detach()
        loss = sum(part.loss for part in parts) + sum(penalties)
        size = sum(part.log["sample_size"] for part in parts)
        return loss, size, {pair: part.log for pair, part in zip(sample, parts)}

    def penalties(self, f: Part, g: Part) -> Tuple[Tensor, List[Tensor]]:
        """l_duality (B,), and what is added to the losses of both directions: half of it each."""
        gap = duality_gap(g.log_marginal, f.log_likelihood, f.log_marginal, g.log_likelihood)
        l_duality = gap.square()
        half = self.weight * l_duality.sum() / 2
        return l_duality, [half, half]

    def part(self, model, pair: str, sample) -> Part:
        """fairseq orders a batch by the lengths of its sources: here the sentences come in the
        order of their numbers, which is the same in both directions.
        """
        loss, nll, log = self.score(model, sample)
        target, lang = sample["target"], pair.split("-")[1]
        prev_tokens = sample["net_input"]["prev_output_tokens"]
        log_y = self.marginals(lang, prev_tokens, target, self.padding_idx)  # (B,)
        learnt = self.marginals.is_learnt(lang)
        log["lm_nll_loss"], log["lm_tokens"] = -log_y.sum() * learnt, sample["ntokens"] * learnt
        tokens, order = target.ne(self.padding_idx).sum(dim=1), sample["id"].argsort()
        return Part(loss, -nll[order], log_y[order], tokens[order], log)

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        """Log the base class's values and, where there are any, the terms of the gap."""
        super().reduce_metrics(logging_outputs)

        def total(name):
            return sum(log.get(name, 0) for log in logging_outputs)

        if any("l_duality" in log for log in logging_outputs):
            pairs, tokens = total("nsentences"), total("lm_tokens")
            metrics.log_scalar("l_duality", total("l_duality") / pairs, pairs, round=3)
            if tokens:
                bits = total("lm_nll_loss") / tokens / math.log(2)
                metrics.log_scalar("lm_nll_loss", bits, tokens, round=3)
