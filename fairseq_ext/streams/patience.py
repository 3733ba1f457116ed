"""Pairs that stop improving leave the run (--pair-patience)."""

import logging
import math
from typing import Any, Dict, List, Mapping, Optional

from fairseq.logging.meters import AverageMeter, MetersDict
from fairseq.tasks.translation import TranslationTask
from torch import nn

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
    if not math.isnan(score) and (best is None or (score > best if maximise else score < best)):
        state.best[pair], state.waited[pair] = score, 0
        return False
    state.waited[pair] = state.waited.get(pair, 0) + 1
    if state.waited[pair] < patience:
        return False
    state.waited[pair] = 0
    return True


class PairPatience(TranslationTask):
    """The part of ``StreamsTask`` that reads each pair's validation score.

    All workers read the same scores, those summed over the workers, and so decide alike. Of
    several --valid-subset the first counts, and a pair's validations count once it takes part.
    """

    cfg: StreamsConfig
    run_state: RunState
    _valid_epoch: Optional[int] = None

    @property
    def trained_pairs(self) -> List[str]:
        """Return the pairs that take part in the updates."""
        raise NotImplementedError

    @property
    def joins(self) -> Dict[str, int]:
        """Return {pair: updates of the run before it takes part}, of those that join late."""
        raise NotImplementedError

    def begin_valid_epoch(self, epoch: int, model: nn.Module) -> None:
        """Note the epoch, of which the first subset's validation follows."""
        super().begin_valid_epoch(epoch, model)
        self._valid_epoch = epoch

    def post_validate(self, model: nn.Module, stats: Mapping[str, Any], agg: MetersDict) -> None:
        """Let the pairs leave that have stalled; fairseq-train calls it after each subset.

        Args:
            model: the run's.
            stats: what the validation has logged, as it is printed.
            agg: {name: meter} of the same.
        """
        epoch, self._valid_epoch = self._valid_epoch, None
        if not self.patience or epoch is None:
            return
        gone = self.run_state.left
        for pair in self.trained_pairs:
            if pair in gone or self.joins.get(pair, -1) >= stats["num_updates"]:
                continue
            name = f"{pair}_loss"
            if name not in agg or agg.get_smoothed_value(name) is None:
                continue  # --max-valid-steps left none of its batches
            score = self.pair_score(pair, stats, agg)
            if is_stalled(self.run_state, pair, score, self.judged_by_bleu(pair), self.patience):
                self.pair_stalled(pair, epoch)

    @property
    def patience(self) -> int:
        """Return the validations in a row without a better score that stall a pair; 0 = off."""
        return self.cfg.pair_patience

    def judged_by_bleu(self, pair: str) -> bool:
        """True if ``pair_score`` is BLEU, False if it is the loss, of which less is better."""
        return self.cfg.eval_bleu

    def pair_score(self, pair: str, stats: Mapping[str, Any], agg: MetersDict) -> float:
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
        epochs depend on belongs into ``run_state``, which checkpoints hold.
        """
        self.run_state.left[pair] = epoch + 1
        logger.info(
            f"{pair}: no better score than {self.run_state.best.get(pair)} in "
            f"{self.cfg.pair_patience} validations in a row (--pair-patience): it takes no part "
            f"from epoch {epoch + 1} on"
        )
        if all(other in self.run_state.left for other in self.trained_pairs):
            logger.info(f"all pairs have left: the run ends with epoch {epoch}")
