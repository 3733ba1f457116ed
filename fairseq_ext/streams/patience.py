"""Pairs that stop improving leave the run (--pair-patience)."""

import logging
import math
from typing import Any, Mapping, Optional, Sequence

from fairseq.logging.meters import AverageMeter, MetersDict

from .config import StreamsConfig
from .state import RunState

logger = logging.getLogger(__name__)


def check_patience(patience: int, disable_validation: bool) -> None:
    """Raise ValueError, naming the option, when --pair-patience cannot work."""
    if patience < 0:
        raise ValueError(f"--pair-patience {patience}: must be at least 0; 0 = off")
    if patience and disable_validation:
        raise ValueError(f"--pair-patience {patience}: needs what --disable-validation leaves out")


def is_stalled(state: RunState, pair: str, score: float, maximise: bool, patience: int) -> bool:
    """Note a validation's ``score``; True if it is the ``patience``-th in a row without a better.

    What is not a number is never better. The count begins anew after a stall.
    """
    best: Optional[float] = state.best.get(pair)
    # only better is better: a score that stays the same counts as a validation waited
    if not math.isnan(score) and (best is None or (score > best if maximise else score < best)):
        state.best[pair], state.waited[pair] = score, 0
        return False
    state.waited[pair] = state.waited.get(pair, 0) + 1
    if state.waited[pair] < patience:
        return False
    state.waited[pair] = 0
    return True


class PairPatience:
    """Reads each pair's validation score, and lets a pair leave that has stalled.

    All workers read the same scores, those summed over the workers, and so decide alike. A pair's
    validations count once it takes part. A system may override all but ``judge``.

    Args:
        cfg: options of the task.
        pairs: those that take part in the updates.
        joins: {pair: updates of the run before it takes part}, of those that join late.
        state: what is noted in; checkpoints hold it.

    Attributes:
        uncounted: updates of the run that the optimiser does not count, of before
            --reset-optimizer.
    """

    uncounted = 0

    def __init__(
        self, cfg: StreamsConfig, pairs: Sequence[str], joins: Mapping[str, int], state: RunState
    ):
        self.cfg, self.pairs, self.joins, self.state = cfg, list(pairs), dict(joins), state

    def judge(self, epoch: int, stats: Mapping[str, Any], agg: MetersDict) -> None:
        """Let the pairs leave that have stalled.

        Args:
            epoch: of the validation.
            stats: what the validation of a subset has logged, as it is printed.
            agg: {name: meter} of the same.
        """
        if not self.patience:
            return
        begin, done = self.state.begins[epoch], stats["num_updates"] + self.uncounted
        late = self.state.late(self.pairs, self.joins, epoch, begin)
        for pair in self.pairs:
            wait = late.get(pair, 0)
            # a pair that joins after N updates has not been trained when N are done
            if pair in self.state.left or (wait and begin + wait >= done):
                continue
            name = f"{pair}_loss"
            if name not in agg or agg.get_smoothed_value(name) is None:
                continue  # --max-valid-steps left none of its batches
            if self.judged_by_bleu(pair) and f"{pair}_bleu" not in stats:
                continue  # the references of its batches are empty
            self._forget_other_score(pair)
            score = self.score(pair, stats, agg)
            if is_stalled(self.state, pair, score, self.judged_by_bleu(pair), self.patience):
                self.pair_stalled(pair, epoch)

    def _forget_other_score(self, pair: str) -> None:
        """Begin anew where a resumed run judges by BLEU what was judged by loss, or vice versa."""
        by_bleu, is_bleu = self.judged_by_bleu(pair), self.state.best_is_bleu
        # checkpoints of versions that did not note it: taken for the same score
        if is_bleu.setdefault(pair, by_bleu) != by_bleu:
            is_bleu[pair] = by_bleu
            self.state.best.pop(pair, None)
            self.state.waited.pop(pair, None)

    @property
    def patience(self) -> int:
        """Return the validations in a row without a better score that stall a pair; 0 = off."""
        return self.cfg.pair_patience

    def judged_by_bleu(self, pair: str) -> bool:
        """True if ``score`` is BLEU, False if it is the loss, of which less is better."""
        return self.cfg.eval_bleu

    def score(self, pair: str, stats: Mapping[str, Any], agg: MetersDict) -> float:
        """Return the pair's BLEU or its loss; the loss is not rounded as in the log."""
        if self.judged_by_bleu(pair):
            return float(stats[f"{pair}_bleu"])
        name = f"{pair}_loss"
        meter = agg[name]
        if isinstance(meter, AverageMeter):
            return float(meter.avg)
        # what a criterion derives from other meters, such as the loss of labels, has no mean
        return float(agg.get_smoothed_value(name))

    def pair_stalled(self, pair: str, epoch: int) -> None:
        """Let a pair leave that has not improved for --pair-patience validations in a row.

        Called on all workers, in ``epoch``. A system may do something else instead. What later
        epochs depend on belongs into ``state``.
        """
        # not at once: the batches of the present epoch are
        # planned, and a resumed run plans the same
        self.state.left[pair] = epoch + 1
        logger.info(
            f"{pair}: no better score than {self.state.best.get(pair)} in "
            f"{self.cfg.pair_patience} validations in a row (--pair-patience): it takes no part "
            f"from epoch {epoch + 1} on"
        )
        if all(other in self.state.left for other in self.pairs):
            logger.info(f"all pairs have left: the run ends with epoch {epoch}")
