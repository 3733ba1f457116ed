"""Sums that workers log, from which scores are derived."""

import torch
from fairseq import metrics

from fairseq_ext.common.log_sums import log_sums


def test_sums_of_workers_add_up_over_batches():
    """Numbers and tensors; an output without a value counts as 0."""
    with metrics.aggregate(new_root=True) as meters:
        first = log_sums([{"_a": 1, "_b": torch.tensor(0.5)}, {"_a": 2}], ("_a", "_b"), "_x")
        second = log_sums([{"_a": 4}], ("_a", "_b"), "_x")
    assert (first, second) == ({"_a": 3, "_b": 0.5}, {"_a": 4, "_b": 0})
    assert {name: meter.sum for name, meter in meters.items()} == {"_x_a": 7, "_x_b": 0.5}
