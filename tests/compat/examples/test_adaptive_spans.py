"""adaptive_span (fairseq_ext/compat/examples/adaptive_spans.py)."""

import math

import pytest


def test_perplexity_is_of_the_loss(example):
    from fairseq.logging import metrics

    criterion = example("adaptive_span", "adaptive_span_loss").AdaptiveSpanCriterion
    log = {"loss": math.log(50), "total_loss": 4.0, "ntokens": 64, "sample_size": 1}
    with metrics.aggregate() as logged:
        criterion.reduce_metrics([log, log])
    values = logged.get_smoothed_values()
    assert values["ppl"] == pytest.approx(50)
    assert values["loss"] == pytest.approx(math.log2(50), abs=1e-3)
    assert "nll_loss" not in values
