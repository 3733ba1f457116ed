"""A batch without an update, such as one whose gradient overflows, repeats no validation."""

from __future__ import annotations

import copy
import functools
import weakref
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before

if TYPE_CHECKING:
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.tasks import FairseqTask
    from fairseq.trainer import Trainer


@patch(
    "fairseq_cli.train",
    because="fairseq 0.12.2: a gradient that overflows right after --validate-interval-updates or "
    "--save-interval-updates repeats the validation, which counts twice for --patience",
)
def validations_are_of_new_updates(module: PatchedModule) -> None:
    """Validate and save in mid-epoch only behind an update.

    What ends an epoch or the run is as before.
    """
    stock = module.validate_and_save
    # {trainer: its number of updates when it was last asked what is due}
    updates_before: weakref.WeakKeyDictionary[Trainer, int] = weakref.WeakKeyDictionary()

    def note_updates(
        cfg: FairseqConfig, trainer: Trainer, task: FairseqTask, epoch_itr: Any
    ) -> None:
        # the epoch before, or the run that is resumed, has done what was due
        updates_before[trainer] = trainer.get_num_updates()

    @functools.wraps(stock)
    def validate_and_save(
        cfg: FairseqConfig,
        trainer: Trainer,
        task: FairseqTask,
        epoch_itr: Any,
        valid_subsets: list[str],
        end_of_epoch: bool,
    ) -> Any:
        updates = trainer.get_num_updates()
        if updates_before.get(trainer) == updates:
            cfg = copy.deepcopy(cfg)
            cfg.checkpoint.save_interval_updates = cfg.dataset.validate_interval_updates = 0
        updates_before[trainer] = updates
        return stock(cfg, trainer, task, epoch_itr, valid_subsets, end_of_epoch)

    call_before(module, "train", note_updates)
    module.validate_and_save = validate_and_save
