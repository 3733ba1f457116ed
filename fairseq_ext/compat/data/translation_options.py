"""Options of `translation` that tasks derived from it declare but do not read."""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.criterions import FairseqCriterion
    from fairseq.models import BaseFairseqModel
    from fairseq.tasks import FairseqTask
    from fairseq.tasks.translation_lev import TranslationLevenshteinTask

# class: what it calls its configuration; both add one token to each source
TASKS = {"TranslationLevenshteinTask": "cfg", "TranslationFromPretrainedBARTTask": "args"}


@patch(
    "fairseq.tasks.translation_lev",
    "fairseq.tasks.translation_from_pretrained_bart",
    because="fairseq 0.12.2: translation_lev and translation_from_pretrained_bart ignore "
    "--truncate-source, --num-batch-buckets and --required-seq-len-multiple",
)
def sources_are_truncated_as_asked(module: PatchedModule) -> None:
    """Read the sets with these options, as `translation` does."""
    name = next(name for name in TASKS if hasattr(module, name))
    task = getattr(module, name)
    stock, load = task.load_dataset, module.load_langpair_dataset

    @functools.wraps(stock)
    def load_dataset(self: FairseqTask, *args: Any, **options: Any) -> None:
        cfg = getattr(self, TASKS[name])
        changed = copy.copy(cfg)
        truncated = getattr(cfg, "truncate_source", False)
        if truncated:
            changed.max_source_positions = cfg.max_source_positions - 1
        setattr(self, TASKS[name], changed)
        module.load_langpair_dataset = functools.partial(
            load,
            truncate_source=truncated,
            num_buckets=getattr(cfg, "num_batch_buckets", 0),
            pad_to_multiple=getattr(cfg, "required_seq_len_multiple", 1),
        )
        try:
            stock(self, *args, **options)
        finally:
            setattr(self, TASKS[name], cfg)
            module.load_langpair_dataset = load

    task.load_dataset = load_dataset


@patch(
    "fairseq.tasks.translation_lev",
    because="fairseq 0.12.2: translation_lev ignores --eval-bleu: no BLEU is logged, and "
    "--best-checkpoint-metric bleu ends the training",
)
def refined_translations_are_validated(module: PatchedModule) -> None:
    """Validate as `translation` does, with the noise that the loss needs."""
    task = module.TranslationLevenshteinTask
    stock = task.valid_step

    @functools.wraps(stock)
    def valid_step(
        self: TranslationLevenshteinTask,
        sample: dict[str, Any],
        model: BaseFairseqModel,
        criterion: FairseqCriterion,
    ) -> Any:
        """Return (loss, sample size, what is logged)."""
        if not self.cfg.eval_bleu:
            return stock(self, sample, model, criterion)
        sample["prev_target"] = self.inject_noise(sample["target"])
        return super(task, self).valid_step(sample, model, criterion)

    task.valid_step = valid_step
