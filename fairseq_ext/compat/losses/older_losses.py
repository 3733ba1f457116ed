"""Losses of criteria and tasks that were written for fairseq 0.9, as fairseq 0.9 logged them."""

from __future__ import annotations

import functools
from typing import Any

from ..patch_registry import PatchedModule, patch

SIZES = ("nsentences", "ntokens", "sample_size")


@patch(
    "fairseq.criterions.fairseq_criterion",
    because="fairseq 0.10 logs what criteria with aggregate_logging_outputs return without "
    "weights: losses of plugins for 0.9 are means over batches, whatever the size of each",
)
def older_losses_have_their_weights(module: PatchedModule) -> None:
    """Weigh the losses of a criterion for fairseq 0.9 by sample size or words, as 0.9 did."""

    def reduce_metrics(cls: Any, logging_outputs: list[dict[str, Any]]) -> None:
        log_with_weights(module, cls.aggregate_logging_outputs(logging_outputs))

    stock = module.FairseqCriterion.reduce_metrics.__func__
    module.FairseqCriterion.reduce_metrics = classmethod(functools.wraps(stock)(reduce_metrics))


@patch(
    "fairseq.tasks.fairseq_task",
    because="fairseq 0.10 logs what tasks with aggregate_logging_outputs return without weights: "
    "the same for tasks of plugins for 0.9",
)
def losses_of_older_tasks_have_their_weights(module: PatchedModule) -> None:
    """Weigh what a task for fairseq 0.9 makes of the losses, and log words and sentences."""
    task = module.FairseqTask
    stock, aggregate = task.reduce_metrics, task.aggregate_logging_outputs

    @functools.wraps(stock)
    def reduce_metrics(self: Any, logging_outputs: Any, criterion: Any) -> None:
        if self.aggregate_logging_outputs.__func__ is aggregate:
            stock(self, logging_outputs, criterion)
            return
        sums = self.aggregate_logging_outputs(logging_outputs, criterion)
        words, sentences = sums.get("ntokens"), sums.get("nsentences")
        if words is not None:
            module.metrics.log_scalar("wpb", words, priority=180, round=1)
            module.metrics.log_speed("wps", words, priority=90, round=1)
        if sentences is not None:
            module.metrics.log_scalar("bsz", sentences, priority=190, round=1)
        log_with_weights(module, sums)

    task.reduce_metrics = reduce_metrics


def log_with_weights(module: PatchedModule, sums: dict[str, Any]) -> None:
    """Log the values that an aggregate_logging_outputs returned, and the perplexity."""
    for name, value in sums.items():
        if name not in SIZES:
            size = "ntokens" if name == "nll_loss" else "sample_size"
            is_weighed = "loss" in name or name == "accuracy"
            module.metrics.log_scalar(name, value, sums.get(size, 1) if is_weighed else 1)
    loss = "nll_loss" if "nll_loss" in sums else "loss"
    if loss in sums and "ppl" not in sums:
        perplexity = module.utils.get_perplexity
        module.metrics.log_derived("ppl", lambda meters: perplexity(meters[loss].avg))


@patch(
    "fairseq.criterions.fairseq_criterion",
    because="fairseq 0.10 gave its criteria reduce_metrics and calls it alone: the "
    "aggregate_logging_outputs of a criterion for 0.9 that derives from one of them is not called, "
    "and what it logs is missing, without a message",
)
def criteria_that_derive_log_their_losses(module: PatchedModule) -> None:
    """Log what a criterion for fairseq 0.9 makes of the losses, whatever it derives from."""
    criterion = module.FairseqCriterion

    def __init_subclass__(cls: Any, **options: Any) -> None:
        super(criterion, cls).__init_subclass__(**options)
        if "aggregate_logging_outputs" not in vars(cls) or "reduce_metrics" in vars(cls):
            return
        owner = owner_of_metrics(cls)
        if owner is not criterion and owner.__module__.startswith("fairseq."):
            cls.reduce_metrics = classmethod(criterion.reduce_metrics.__func__)
            if "logging_outputs_can_be_summed" not in vars(cls):
                cls.logging_outputs_can_be_summed = staticmethod(lambda: False)

    stock = criterion.aggregate_logging_outputs

    @functools.wraps(stock)
    def aggregate_logging_outputs(
        cls: Any, logging_outputs: list[dict[str, Any]]
    ) -> dict[str, Any]:
        owner = owner_of_metrics(cls, stock_alone=True)
        if owner is criterion:  # which has none of its own
            result: dict[str, Any] = stock(logging_outputs)
            return result
        # out of sight of the meters of the run
        with module.metrics.aggregate(new_root=True) as logged:
            owner.reduce_metrics(logging_outputs)
        means = {name: meter.avg for name, meter in logged.items() if hasattr(meter, "avg")}
        sums = {name: sum(log.get(name, 0) for log in logging_outputs) for name in SIZES}
        return {**means, **sums}

    criterion.__init_subclass__ = classmethod(__init_subclass__)
    criterion.aggregate_logging_outputs = classmethod(aggregate_logging_outputs)


def owner_of_metrics(criterion: type, stock_alone: bool = False) -> Any:
    """Return the class whose `reduce_metrics` a criterion has; of fairseq's own if asked."""
    return next(
        owner
        for owner in criterion.__mro__
        if "reduce_metrics" in vars(owner)
        and (not stock_alone or owner.__module__.startswith("fairseq."))
    )
