"""--eval-bleu where translations are empty, as early in a training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..corpus_bleu import bleu_of_meters
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after

if TYPE_CHECKING:
    from fairseq.criterions import FairseqCriterion
    from fairseq.tasks.translation import TranslationTask


@patch(
    "fairseq.tasks.translation",
    because="fairseq 0.12.2: --eval-bleu leaves out batches whose translations are all empty, with "
    "their references; if all are, --best-checkpoint-metric bleu ends the training",
)
def empty_translations_count(module: PatchedModule) -> None:
    """Add the length of their references to that of the others."""

    def count_references(
        self: TranslationTask, logging_outputs: list[dict[str, Any]], criterion: FairseqCriterion
    ) -> None:
        # in training there are none
        references = sum(int(log.get("_bleu_ref_len", 0)) for log in logging_outputs)
        words = sum(int(log.get("_bleu_sys_len", 0)) for log in logging_outputs)
        if references and not words:
            zeros = module.np.zeros(module.EVAL_BLEU_ORDER, dtype=int)
            for name, value in (("counts", zeros), ("totals", zeros), ("sys_len", 0)):
                module.metrics.log_scalar(f"_bleu_{name}", value)
            module.metrics.log_scalar("_bleu_ref_len", references)
            module.metrics.log_derived("bleu", bleu_of_meters)

    call_after(module.TranslationTask, "reduce_metrics", count_references)
