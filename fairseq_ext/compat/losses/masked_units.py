"""What --criterion hubert logs of a training or a validation."""

from __future__ import annotations

import functools
import math
from typing import Any

from ..patch_registry import PatchedModule, patch


@patch(
    "fairseq.criterions.hubert_criterion",
    because="fairseq 0.12.2: hubert logs means of the accuracies and losses of batches, however "
    "many frames each has",
)
def frames_count_alike(module: PatchedModule) -> None:
    """Weight accuracies by the frames that are predicted, and parts of the loss by its size."""
    criterion, metrics = module.HubertCriterion, module.metrics
    stock = criterion.reduce_metrics

    @functools.wraps(stock)
    def reduce_metrics(logging_outputs: list[dict[str, Any]]) -> None:
        names = [name for name in logging_outputs[0] if name.startswith(("loss_", "correct_"))]
        stock([{key: log[key] for key in log if key not in names} for log in logging_outputs])
        for name in names:
            total = sum(log[name] for log in logging_outputs)
            if name.startswith("correct_"):
                counter = name.replace("correct", "count")
                count = sum(log[counter] for log in logging_outputs)
                metrics.log_scalar(name, total / count, count)
            else:
                size = sum(log["sample_size"] for log in logging_outputs)
                metrics.log_scalar(name, total / size / math.log(2), size, round=3)

    criterion.reduce_metrics = staticmethod(reduce_metrics)
