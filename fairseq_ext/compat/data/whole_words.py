"""--mask-whole-words of the task `masked_lm`."""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.tasks import FairseqTask


@patch(
    "fairseq.tasks.masked_lm",
    because="fairseq 0.12.2: masked_lm with --mask-whole-words ends in \"'MaskedLMTask' object has "
    "no attribute 'args'\"",
)
def whole_words_are_those_of_bpe(module: PatchedModule) -> None:
    """Give the task the options of --bpe, by which fairseq tells where words begin."""
    task_class = module.MaskedLMTask
    stock = task_class.load_dataset

    @functools.wraps(stock)
    def load_dataset(self: FairseqTask, split: str, *args: Any, **kwargs: Any) -> None:
        task = self
        if self.cfg.mask_whole_words:
            task = copy.copy(self)  # its sets are those of the task
            # the options of all parts of the run; a task that is made by itself is in none
            run = self.cfg.__dict__.get("_parent")
            task.args = None if run is None else run.bpe
        stock(task, split, *args, **kwargs)

    task_class.load_dataset = load_dataset
