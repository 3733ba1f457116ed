"""Pairs that stop improving leave the run (--pair-patience)."""

import logging
from typing import Any, Dict, List, Optional

from .state import RunState

logger = logging.getLogger(__name__)


def check_patience(patience: int, disable_validation: bool) -> None:
    """Raise ValueError, naming the option, when --pair-patience cannot work."""
    if patience < 0:
        raise ValueError(f"--pair-patience {patience}: must be at least 0; 0 = off")
    if patience and disable_validation:
        raise ValueError(f"--pair-patience {patience}: needs what --disable-validation leaves out")


def is_stalled(state: RunState, pair: str, score: float, maximise: bool, patience: int) -> bool:
    """Note a validation's ``score``; whether it is the ``patience``-th in a row without a better.

    What is not a number is never better. The count begins anew after a stall.
    """
    best: Optional[float] = state.best.get(pair)
    better = score == score and (best is None or (score > best if maximise else score < best))
    if better:
        state.best[pair], state.waited[pair] = score, 0
        return False
    state.waited[pair] = state.waited.get(pair, 0) + 1
    if state.waited[pair] < patience:
        return False
    state.waited[pair] = 0
    return True


class PairPatience:
    """The part of ``StreamsTask`` that reads each pair's validation score.

    All workers read the same scores, those summed over the workers, and so decide alike. Of
    several --valid-subset the first counts, and a pair's validations count once it takes part.
    """

    cfg: Any
    pairs: List[str]
    joins: Dict[str, int]
    run_state: RunState
    _valid_epoch: Optional[int] = None

    def begin_valid_epoch(self, epoch, model):
        super().begin_valid_epoch(epoch, model)
        self._valid_epoch = epoch

    def post_validate(self, model, stats, agg):
        """fairseq-train calls it after each subset's validation, with what was logged."""
        epoch, self._valid_epoch = self._valid_epoch, None
        if not self.patience or epoch is None:
            return
        gone = self.run_state.left
        for pair in self.pairs:
            if pair in gone or self.joins.get(pair, -1) >= stats["num_updates"]:
                continue
            if f"{pair}_loss" not in agg:  # --max-valid-steps left none of its batches
                continue
            score = self.pair_score(pair, stats, agg)
            if is_stalled(self.run_state, pair, score, self.judged_by_bleu(pair), self.patience):
                self.pair_stalled(pair, epoch)

    @property
    def patience(self) -> int:
        """Validations in a row without a better score after which a pair is stalled; 0 = off."""
        return self.cfg.pair_patience

    def judged_by_bleu(self, pair: str) -> bool:
        """Whether ``pair_score`` is BLEU, or the loss, of which less is better."""
        return self.cfg.eval_bleu

    def pair_score(self, pair: str, stats, agg) -> float:
        """The pair's BLEU or its loss (not rounded as in the log)."""
        if self.judged_by_bleu(pair):
            return float(stats[f"{pair}_bleu"])
        return float(agg[f"{pair}_loss"].avg)

    def pair_stalled(self, pair: str, epoch: int) -> None:
        """What follows when a pair has not improved for --pair-patience validations in a row.

        Called on all workers, in ``epoch``. Here the pair leaves; a system may do something else.
        What later epochs depend on belongs into ``run_state``, which checkpoints hold.
        """
        self.run_state.left[pair] = epoch + 1
        logger.info(
            f"{pair}: no better score than {self.run_state.best.get(pair)} in "
            f"{self.cfg.pair_patience} validations in a row (--pair-patience): it takes no part "
            f"from epoch {epoch + 1} on"
        )
        if all(known in self.run_state.left for known in self.pairs):
            logger.info(f"all pairs have left: the run ends with epoch {epoch}")
