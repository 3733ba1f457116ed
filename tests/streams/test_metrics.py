"""Sums of several pairs and several workers, and what is logged from them."""

import math
from collections import OrderedDict

import numpy as np
import pytest
import sacrebleu
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.logging import metrics

from fairseq_ext.streams.metrics import (
    log_bleu_summary,
    log_pair,
    log_pair_bleu,
    merge_logs,
)

PAIRS = ["x-y", "y-x"]
# only its class's reduce_metrics is used
CRITERION = object.__new__(LabelSmoothedCrossEntropyCriterion)


def criterion_log(loss, tokens):
    """What a cross entropy returns: sums as tensors on the device, counts as numbers."""
    return {
        "loss": torch.tensor(loss),
        "nll_loss": torch.tensor(loss / 2),
        "ntokens": tokens,
        "nsentences": 1,
        "sample_size": tokens,
    }


def reduced(outputs, log):
    """{name: value} of what ``log(outputs)`` logs."""
    with metrics.aggregate(new_root=True) as found:
        log(outputs)
    return found.get_smoothed_values()


def test_totals_and_parts():
    merged = merge_logs({"x-y": criterion_log(6.0, 3), "y-x": criterion_log(4.0, 2)}, PAIRS)
    assert merged["loss"].item() == 10 and merged["ntokens"] == 5
    assert merged["x-y:loss"].item() == 6 and merged["y-x:loss"].item() == 4
    assert merged["x-y:ntokens"] == 3 and merged["y-x:ntokens"] == 2


def test_untouched_pairs_count_nothing():
    merged = merge_logs({"x-y": criterion_log(6.0, 3)}, PAIRS)
    assert merged["loss"].item() == 6
    assert all(float(merged[f"y-x:{name}"]) == 0 for name in criterion_log(0.0, 0))


def all_reduce(outputs):
    """fairseq's sum over workers: values on the device in one vector, the others in another.

    Vectors are matched by position, and each worker reads the sums under its own names.
    """
    parts = [
        [OrderedDict((k, float(v)) for k, v in log.items() if torch.is_tensor(v) == tensors)
         for log in outputs]
        for tensors in (True, False)
    ]  # fmt: skip
    read = [{} for _ in outputs]
    for vectors in parts:
        sums = np.sum([list(vector.values()) for vector in vectors], axis=0)
        for worker, vector in enumerate(vectors):
            read[worker].update(zip(vector, sums))
    return read


def test_workers_on_different_pairs_read_the_same_sums():
    """In validation a worker without a batch of its own repeats one of another pair, as zeros."""
    busy = merge_logs({"y-x": criterion_log(4.0, 2)}, PAIRS)
    idle = merge_logs({"x-y": criterion_log(6.0, 3)}, PAIRS)
    idle = {name: torch.zeros_like(v) if torch.is_tensor(v) else 0 for name, v in idle.items()}
    first, second = all_reduce([busy, idle])
    assert first == second == {name: float(value) for name, value in busy.items()}


def test_each_pair_is_logged_like_a_run_of_its_own():
    outputs = [
        merge_logs({"x-y": criterion_log(6.0, 3), "y-x": criterion_log(1.0, 1)}, PAIRS),
        merge_logs({"x-y": criterion_log(2.0, 1)}, PAIRS),
    ]
    for pair, loss, tokens in (("x-y", 8.0, 4), ("y-x", 1.0, 1)):
        found = reduced(outputs, lambda logs, p=pair: log_pair(CRITERION, logs, p))
        bits = loss / tokens / math.log(2)
        assert found[f"{pair}_loss"] == pytest.approx(bits, abs=1e-3)
        assert found[f"{pair}_nll_loss"] == pytest.approx(bits / 2, abs=1e-3)
        assert found[f"{pair}_ppl"] == pytest.approx(2 ** (bits / 2), abs=0.02)


def test_a_pair_without_a_batch_logs_nothing():
    outputs = [merge_logs({"x-y": criterion_log(6.0, 3)}, PAIRS)]
    assert not reduced(outputs, lambda logs: log_pair(CRITERION, logs, "y-x"))


def bleu_sums(hypotheses, references):
    score = sacrebleu.corpus_bleu(hypotheses, [references])
    sums = {"_bleu_sys_len": score.sys_len, "_bleu_ref_len": score.ref_len}
    for order in range(4):
        sums[f"_bleu_counts_{order}"] = score.counts[order]
        sums[f"_bleu_totals_{order}"] = score.totals[order]
    return sums


def test_bleu_is_that_of_the_corpus_not_the_mean_over_batches():
    references = ["the cat sat on the mat today", "a dog ran far away", "it rained all day long"]
    hypotheses = ["the cat sat on a mat today", "a dog ran away", "it rained all day long"]
    outputs = []
    for part in (slice(0, 1), slice(1, 3)):
        sums = bleu_sums(hypotheses[part], references[part])
        log = {**criterion_log(1.0, 1), **sums}
        other = {**criterion_log(1.0, 1), **bleu_sums(references[part], references[part])}
        outputs.append(merge_logs({"x-y": log, "y-x": other}, PAIRS))

    def log(logs):
        for pair in PAIRS:
            log_pair_bleu(logs, pair)
        log_bleu_summary(PAIRS)

    found = reduced(outputs, log)
    expected = sacrebleu.corpus_bleu(hypotheses, [references]).score
    assert found["x-y_bleu"] == pytest.approx(expected, abs=0.011)
    assert found["y-x_bleu"] == pytest.approx(100, abs=0.011)
    assert found["worst_bleu"] == pytest.approx(expected, abs=0.011)
    assert found["bleu"] == pytest.approx((expected + 100) / 2, abs=0.011)
