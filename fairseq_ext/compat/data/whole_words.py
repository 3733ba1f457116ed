"""--mask-whole-words of the tasks `masked_lm` and `multilingual_masked_lm`."""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.tasks import FairseqTask
    from fairseq.tasks.multilingual_masked_lm import MultiLingualMaskedLMTask
    from torch import Tensor


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


@patch(
    "fairseq.tasks.multilingual_masked_lm",
    because="fairseq 0.12.2: multilingual_masked_lm with --mask-whole-words, but without --bpe, "
    "ends in UnboundLocalError",
)
def tokens_are_words_without_bpe(module: PatchedModule) -> None:
    """Mask single tokens where no --bpe says where words begin, as masked_lm does."""
    task = module.MultiLingualMaskedLMTask
    stock = task._get_whole_word_mask

    @functools.wraps(stock)
    def _get_whole_word_mask(self: MultiLingualMaskedLMTask) -> Tensor | None:
        if getattr(self.args, "bpe", None) is None:
            return None
        mask: Tensor | None = stock(self)
        return mask

    task._get_whole_word_mask = _get_whole_word_mask
