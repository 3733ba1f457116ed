"""What --criterion hubert logs."""

import math

import pytest
from fairseq.criterions.hubert_criterion import HubertCriterion
from fairseq.logging import metrics


def log(correct, count, loss, size):
    sums = {"loss": loss, "ntokens": size, "nsentences": 1, "sample_size": size, "loss_m_0": loss}
    return {**sums, "loss_features_pen": size / 2, "correct_m_0": correct, "count_m_0": count}


def test_frames_count_alike():
    with metrics.aggregate(new_root=True) as meters:
        HubertCriterion.reduce_metrics([log(1, 2, 4.0, 2), log(0, 8, 8.0, 8)])
        HubertCriterion.reduce_metrics([log(90, 90, 9.0, 90)])
    logged = meters.get_smoothed_values()
    assert logged["correct_m_0"] == pytest.approx(91 / 100)
    assert logged["loss_m_0"] == logged["loss"] == round(21 / 100 / math.log(2), 3)
    assert logged["loss_features_pen"] == round(0.5 / math.log(2), 3)
