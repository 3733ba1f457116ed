"""Tasks that stop improving lose weight (--task-patience)."""

import logging
from typing import TYPE_CHECKING, Callable, Dict, Mapping, Sequence

from ..streams.patience import PairPatience
from ..streams.state import RunState

if TYPE_CHECKING:
    from .task import RoutedMtlConfig

logger = logging.getLogger(__name__)
# of ``RunState.more``: {pair: 2^-k after k halvings of its weight}
HALVED = "weight"


def check_task_patience(cfg: "RoutedMtlConfig") -> None:
    """Raise ValueError, naming the option, where --task-patience cannot work."""
    if cfg.task_patience < 0:
        raise ValueError(f"--task-patience {cfg.task_patience}: must be at least 0; 0 = off")
    excluded = {
        "--pair-patience": cfg.pair_patience,
        "--disable-validation": cfg.disable_validation,
    }
    for option, value in excluded.items():
        if cfg.task_patience and value:
            raise ValueError(
                f"--task-patience {cfg.task_patience}: does not go together with {option}"
            )


class TaskPatience(PairPatience):
    """Halves the weight of a task that has stalled; without --task-patience the task leaves.

    Args:
        cfg, pairs, joins, state: as of ``PairPatience``.
        kinds: {pair: what its target is}.
        weights: returns {pair: its present weight in the objective}.
    """

    def __init__(
        self,
        cfg: "RoutedMtlConfig",
        pairs: Sequence[str],
        joins: Mapping[str, int],
        state: RunState,
        kinds: Mapping[str, str],
        weights: Callable[[], Dict[str, float]],
    ):
        super().__init__(cfg, pairs, joins, state)
        self.cfg: RoutedMtlConfig = cfg
        self.kinds, self.weights = kinds, weights

    @property
    def patience(self) -> int:
        """Return the number of validations without a better score that a pair may have."""
        return self.cfg.task_patience or self.cfg.pair_patience

    def judged_by_bleu(self, pair: str) -> bool:
        """True for texts, unless --task-patience is set, which always goes by the loss."""
        is_by_bleu = super().judged_by_bleu(pair) and not self.cfg.task_patience
        return is_by_bleu and self.kinds[pair] == "text"

    def pair_stalled(self, pair: str, epoch: int) -> None:
        """Halve the task's weight with --task-patience; otherwise the pair leaves."""
        if not self.cfg.task_patience:
            super().pair_stalled(pair, epoch)
            return
        weights = self.state.more.setdefault(HALVED, {})
        weights[pair] = weights.get(pair, 1.0) / 2
        logger.info(
            f"{pair}: no better loss than {self.state.best.get(pair)} in "
            f"{self.cfg.task_patience} validations in a row (--task-patience): its weight is now "
            f"{self.weights()[pair]:g}"
        )
