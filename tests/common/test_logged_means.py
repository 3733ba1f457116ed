"""What criterions log is a mean over all that was seen, however that is cut into batches.

fairseq calls ``reduce_metrics`` once for each update and once for each batch of a validation, and
averages what the calls log by their weights. One call that has all batches needs no weights.
"""

import itertools
import math

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.logging import metrics

from fairseq_ext.dual.lstm_classifier.criterion import DualLabelCrossEntropy
from fairseq_ext.dual.supervised.criterion import DualSupervisedCriterion
from fairseq_ext.duo.classifier.criterion import LabelCrossEntropy
from fairseq_ext.streams.metrics import log_likelihoods, log_pairs, merge_logs
from fairseq_ext.twin.criterion import TwinCriterion

PAIRS = ["x-y", "y-x"]


def likelihoods(sizes):
    """Logs of a criterion with likelihoods: (loss, tokens, sentences) each."""
    return [
        {"loss": loss, "nll_loss": loss / 2, "ntokens": tokens, "nsentences": sentences,
         "sample_size": tokens}
        for loss, tokens, sentences in sizes
    ]  # fmt: skip


SIZES = [(6.0, 3, 1), (9.0, 14, 2), (20.0, 5, 2)]


def twin():
    """Matched tokens are fewer than tokens, and a sample size of sentences is neither."""
    parts = zip(likelihoods(SIZES), [(3.0, 2), (5.0, 12), (0.5, 3)])
    return [
        {**log, "backward_nll_loss": log["loss"] / 3, "L_t": penalty, "matched": matched,
         "sample_size": log["nsentences"]}
        for log, (penalty, matched) in parts
    ]  # fmt: skip


def supervised():
    """l_duality is a mean over pairs, the loss one over tokens of targets."""
    parts = zip(likelihoods(SIZES), [(8.0, 7.0, 3), (1.0, 9.0, 9), (0.0, 2.0, 5)])
    return [
        {**log, "l_duality": gap, "lm_nll_loss": nll, "lm_tokens": tokens}
        for log, (gap, nll, tokens) in parts
    ]


def labels():
    """Batches of labels, whose number differs, and two of texts.

    With --label-weight text a label counts as much as its text has tokens.
    """
    logs = [
        {"label_nll": nll, "label_weight": 5 * count, "wrong": wrong, "labels": count,
         "text_nll": 0.0, "text_tokens": 0}
        for nll, count, wrong in ((2.0, 1, 1), (1.0, 4, 0), (6.0, 2, 1))
    ]  # fmt: skip
    return logs + [
        {"label_nll": 0.0, "label_weight": 0, "wrong": 0, "labels": 0,
         "text_nll": nll, "text_tokens": tokens}
        for nll, tokens in ((7.0, 3), (4.0, 11))
    ]  # fmt: skip


def texts():
    rows = [(3.0, 1, 2, [[1, 0], [1, 1], [1, 1]]), (1.0, 5, 6, [[2, 3], [3, 3], [2, 4]])]
    return [
        {"loss": loss, "correct": correct, "sample_size": size, "label_counts": torch.tensor(table)}
        for loss, correct, size, table in rows
    ]


def pairs():
    """Updates that have one of two pairs, or both."""
    first, second, third = likelihoods(SIZES)
    parts = [{"x-y": first, "y-x": second}, {"x-y": third}, {"y-x": third}, {"x-y": second}]
    return [
        merge_logs(
            {
                pair: {**log, "_log_p": -log["nll_loss"], "_references": log["nsentences"]}
                for pair, log in part.items()
            },
            PAIRS,
        )
        for part in parts
    ]


def reduce_pairs(logs):
    log_pairs(object.__new__(LabelSmoothedCrossEntropyCriterion), logs, PAIRS)
    log_likelihoods(logs, PAIRS)


CASES = {
    "twin": (TwinCriterion.reduce_metrics, twin()),
    "dual_supervised": (DualSupervisedCriterion.reduce_metrics, supervised()),
    "labels": (DualLabelCrossEntropy.reduce_metrics, labels()),
    "label_cross_entropy": (LabelCrossEntropy.reduce_metrics, texts()),
    "pairs": (reduce_pairs, pairs()),
}


def logged(reduce, calls):
    """{name: value} after a call of ``reduce`` for each of ``calls``, lists of logs."""
    with metrics.aggregate(new_root=True) as meters:
        for logs in calls:
            reduce(logs)
    return dict(meters.get_smoothed_values())


@pytest.mark.parametrize("case", CASES)
def test_the_cut_into_batches_does_not_matter(case):
    reduce, logs = CASES[case]
    whole = logged(reduce, [logs])
    assert len(whole) > 1 and all(math.isfinite(value) for value in whole.values())
    for order in itertools.islice(itertools.permutations(logs), 0, None, 5):
        for cut in (1, len(logs) - 1):
            parts = [[log] for log in order[:cut]] + [list(order[cut:])]
            assert logged(reduce, parts) == pytest.approx(whole, abs=2e-3)
        assert logged(reduce, [[log] for log in order]) == pytest.approx(whole, abs=2e-3)


def test_a_direction_that_has_left_takes_no_part_in_the_loss():
    """fairseq empties meters at the end of an epoch and keeps them."""
    logs = labels()
    with metrics.aggregate(new_root=True) as meters:
        DualLabelCrossEntropy.reduce_metrics(logs)
        meters.reset()
        assert math.isnan(meters.get_smoothed_value("loss"))
        DualLabelCrossEntropy.reduce_metrics(logs[3:])
    assert meters.get_smoothed_value("loss") == pytest.approx(11 / 14 / math.log(2), abs=1e-4)
