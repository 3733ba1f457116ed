"""The best score so far, which decides about `checkpoint_best.pt` and --patience.

fairseq 0.12.2 keeps it as an attribute of functions, and stores it without saying of which metric
it is. --keep-best-checkpoints compares with the scores in the names of files.
"""

from __future__ import annotations

import functools
import logging
import math
import os
import sys
from typing import TYPE_CHECKING, Any, Callable, Mapping

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before
from ..user_errors import OptionError

if TYPE_CHECKING:
    from fairseq.dataclass.configs import CheckpointConfig, FairseqConfig
    from fairseq.trainer import Trainer

logger = logging.getLogger(__name__)

# where the names of files of --keep-best-checkpoints have their score, in fairseq's pattern
SCORE = r"_(\d+\.?\d*)"
NEGATIVE_TOO = r"_(-?\d+\.?\d*)"
# last words of metrics, such as "de-en_bleu", of which more, and of which less is better
HIGHER = {"bleu", "likelihood", "accuracy", "correct", "exact", "f1", "cider", "chrf", "mcc"}
LOWER = {"loss", "ppl", "nll", "ter", "wer", "cer", "uer", "error"}
# of which metric the best score of a checkpoint is, in its "extra_state"
NOTE = "best_of"


def _forget_best() -> None:
    """Forget the best score so far, and for how long --patience has waited for a better one."""
    for module, function in (
        ("fairseq.checkpoint_utils", "save_checkpoint"),
        ("fairseq_cli.train", "should_stop_early"),
    ):
        if module in sys.modules:
            state = vars(getattr(sys.modules[module], function))
            for name in ("best", "num_runs"):
                state.pop(name, None)


@patch(
    "fairseq_cli.train",
    because="fairseq 0.12.2 keeps the best score in the process: the next training there, such as "
    "of a sweep of fairseq-hydra-train, has no checkpoint_best.pt unless it beats the one before",
)
def best_scores_are_of_one_run(module: PatchedModule) -> None:
    """Begin each training without a best score."""

    def forget_scores(cfg: FairseqConfig, *args: Any, **kwargs: Any) -> None:
        _forget_best()

    call_before(module, "main", forget_scores)


@patch(
    "fairseq_cli.train",
    because="fairseq 0.12.2: --best-checkpoint-metric bleu without --maximize-best-checkpoint-"
    "metric keeps the worst checkpoint as checkpoint_best.pt, without a word",
)
def directions_of_metrics_are_named(module: PatchedModule) -> None:
    """Warn where the best score is looked for at the wrong end of its metric."""

    def warn_of_direction(cfg: FairseqConfig, *args: Any, **kwargs: Any) -> None:
        # a Namespace has no groups
        metric, is_greatest = _metric(getattr(cfg, "checkpoint", cfg))
        is_validated = not getattr(cfg, "dataset", cfg).disable_validation
        last = str(metric).rpartition("_")[2]
        if is_validated and last in (LOWER if is_greatest else HIGHER):
            end, remedy = ("greatest", "leave out") if is_greatest else ("least", "give")
            logger.warning(
                f"--best-checkpoint-metric {metric}: checkpoint_best.pt will be of the {end} "
                f"{metric}, and --patience waits for it, though that is the worst; "
                f"{remedy} --maximize-best-checkpoint-metric"
            )

    call_before(module, "main", warn_of_direction)


@patch(
    "fairseq_cli.train",
    because="fairseq 0.12.2: an unknown --best-checkpoint-metric ends in a KeyError",
)
def best_checkpoint_metric_is_known(module: PatchedModule) -> None:
    """Refuse an unknown metric, at the end of the first validation, with those there are."""
    stock = module.get_valid_stats

    def get_valid_stats(
        cfg: FairseqConfig, trainer: Trainer, stats: dict[str, Any], tracking_best: bool
    ) -> dict[str, Any]:
        # before a validation nobody knows the names:
        # they are checked when fairseq looks one up
        is_cut = cfg.dataset.max_valid_steps is not None
        return stock(cfg, trainer, ValidationStats(stats, tracking_best, is_cut), tracking_best)

    module.get_valid_stats = get_valid_stats


class ValidationStats(dict):
    """Statistics of one subset's validation by name.

    Args:
        stats: {name: value} of what was measured.
        decides: the subset chooses the best checkpoint, as the first one does: to read what is
            missing raises OptionError. Of the others it is None; fairseq reads it all the same.
        is_cut: --max-valid-steps leaves batches out.
    """

    def __init__(self, stats: Mapping[str, Any], decides: bool = True, is_cut: bool = False):
        super().__init__(stats)
        self.decides, self.is_cut = decides, is_cut

    def __missing__(self, name: str) -> None:
        if not self.decides:
            return
        batches = " in the batches that --max-valid-steps leaves" if self.is_cut else ""
        raise OptionError(
            f"--best-checkpoint-metric {name} is not among what this training measures{batches}; "
            f"allowed: {', '.join(sorted(self))}"
        )


@patch(
    "fairseq.checkpoint_utils",
    because="fairseq 0.12.2: a validation that gives NaN replaces the best score, and the next "
    "one, however bad, checkpoint_best.pt; --keep-best-checkpoints keeps fewer than it says, and "
    "all of those with negative scores",
)
def best_checkpoints_are_the_best(module: PatchedModule) -> None:
    """Leave NaN out of the comparison, and fill the N places of --keep-best-checkpoints."""
    save, find = module.save_checkpoint, module.checkpoint_paths
    # while a checkpoint is written: the configuration, until its best ones were looked up
    filling: list[CheckpointConfig] = []

    @functools.wraps(find)
    def checkpoint_paths(
        path: str, pattern: str = r"checkpoint(\d+)\.pt", keep_match: bool = False
    ) -> Any:
        if r"checkpoint\.best_" in pattern:
            pattern = pattern.replace(SCORE, NEGATIVE_TOO)
        paths = find(path, pattern, keep_match)
        if filling and pattern.startswith(r"checkpoint\.best_"):
            cfg = filling.pop()
            if len(paths) < cfg.keep_best_checkpoints:
                # fairseq compares with the score in this name: a place is free, any score is better
                worst = "-inf" if cfg.maximize_best_checkpoint_metric else "inf"
                ending = pattern.rpartition(NEGATIVE_TOO)[2].replace("\\", "")
                return [os.path.join(path, f"checkpoint.best_{worst}{ending}")]
        return paths

    @functools.wraps(save)
    def save_checkpoint(
        cfg: CheckpointConfig, trainer: Trainer, epoch_itr: Any, val_loss: float | None
    ) -> None:
        if val_loss is not None and math.isnan(val_loss):
            logger.warning(f"{cfg.best_checkpoint_metric} is NaN: not compared with the best one")
            val_loss = None
        filling[:] = [cfg] if val_loss is not None and cfg.keep_best_checkpoints > 0 else []
        save(cfg, trainer, epoch_itr, val_loss)

    module.checkpoint_paths, module.save_checkpoint = checkpoint_paths, save_checkpoint


@patch(
    "fairseq_cli.train",
    because="fairseq 0.12.2: --patience takes NaN of the first validation for the best score, "
    "which no other is better than: the training ends while it improves",
)
def nan_is_the_worst_score(module: PatchedModule) -> None:
    """Let --patience count a validation that gives NaN as one without a better score."""
    stock = module.should_stop_early

    @functools.wraps(stock)
    def should_stop_early(cfg: FairseqConfig, valid_loss: float | None) -> bool:
        if valid_loss is not None and math.isnan(valid_loss):
            valid_loss = -math.inf if cfg.checkpoint.maximize_best_checkpoint_metric else math.inf
        return bool(stock(cfg, valid_loss))

    module.should_stop_early = should_stop_early


def _metric(cfg: CheckpointConfig) -> list[Any]:
    """Return what two best scores must have in common to be compared."""
    return [cfg.best_checkpoint_metric, bool(cfg.maximize_best_checkpoint_metric)]


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: a run that goes on with another --best-checkpoint-metric compares its "
    "scores with the best one of the metric before",
)
def best_scores_name_their_metric(module: PatchedModule) -> None:
    """Note the metric of the best score in the checkpoint."""
    trainer = module.Trainer
    save = trainer.save_checkpoint

    @functools.wraps(save)
    def save_checkpoint(self: Trainer, filename: str, extra_state: dict[str, Any]) -> Any:
        return save(self, filename, {**extra_state, NOTE: _metric(self.cfg.checkpoint)})

    trainer.save_checkpoint = save_checkpoint


@patch("fairseq.checkpoint_utils", because="fairseq 0.12.2, as before")
def best_scores_of_other_metrics_are_forgotten(module: PatchedModule) -> None:
    """Begin without a best score where the checkpoint's is of another metric."""
    load: Callable[..., Any] = module.load_checkpoint

    @functools.wraps(load)
    def load_checkpoint(cfg: CheckpointConfig, trainer: Trainer, **kwargs: Any) -> Any:
        extra_state, epoch_itr = load(cfg, trainer, **kwargs)
        noted = (extra_state or {}).get(NOTE)  # None: written without this patch
        is_reset = cfg.reset_meters or cfg.reset_optimizer  # stock forgets it
        if noted is not None and list(noted) != _metric(cfg) and not is_reset:
            _forget_best()
            logger.warning(
                f"--best-checkpoint-metric {cfg.best_checkpoint_metric}: the checkpoint's best "
                f"score is of {noted[0]}; the best one is looked for from here on"
            )
        return extra_state, epoch_itr

    module.load_checkpoint = load_checkpoint
