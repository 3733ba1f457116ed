"""Sums of several pairs and several workers, and what is logged from them."""

import math
from collections import OrderedDict

import numpy as np
import pytest
import sacrebleu
import torch
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.logging import metrics

from fairseq_ext.streams.metrics import (
    likelihood_log,
    log_bleu_summary,
    log_likelihoods,
    log_pair_bleu,
    log_pairs,
    merge_logs,
)

PAIRS = ["x-y", "y-x"]
# only its class's reduce_metrics is used
CRITERION = object.__new__(LabelSmoothedCrossEntropyCriterion)
PLAIN = object.__new__(CrossEntropyCriterion)


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
    with metrics.aggregate(new_root=True) as aggregator:
        log(outputs)
    return aggregator.get_smoothed_values()


def test_totals_and_parts():
    merged = merge_logs({"x-y": criterion_log(6.0, 3), "y-x": criterion_log(4.0, 2)}, PAIRS)
    assert merged["loss"].item() == 10 and merged["ntokens"] == 5
    assert merged["x-y:loss"].item() == 6 and merged["y-x:loss"].item() == 4
    assert merged["x-y:ntokens"] == 3 and merged["y-x:ntokens"] == 2


def test_a_value_that_one_pair_alone_logs_is_there():
    logs = {"x-y": {"loss": 2.0}, "y-x": {"loss": 3.0, "extra": 4}}
    expected = {"loss": 5.0, "extra": 4, "x-y:loss": 2.0, "x-y:extra": 0, "y-x:loss": 3.0}
    assert merge_logs(logs, PAIRS) == {**expected, "y-x:extra": 4}


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
        merge_logs({"x-y": criterion_log(2.0, 1)}, PAIRS),
        merge_logs({"x-y": criterion_log(6.0, 3), "y-x": criterion_log(1.0, 1)}, PAIRS),
    ]
    for pair, loss, tokens in (("x-y", 8.0, 4), ("y-x", 1.0, 1)):
        values = reduced(outputs, lambda logs, p=pair: log_pairs(CRITERION, logs, [p]))
        bits = loss / tokens / math.log(2)
        assert values[f"{pair}_loss"] == pytest.approx(bits, abs=1e-3)
        assert values[f"{pair}_nll_loss"] == pytest.approx(bits / 2, abs=1e-3)
        assert values[f"{pair}_ppl"] == pytest.approx(2 ** (bits / 2), abs=0.02)


def test_means_over_batches_count_tokens_and_references():
    """A validation logs batch by batch: 6 nats of three tokens, then 1 nat of one token."""
    with metrics.aggregate(new_root=True) as logged:
        for loss, tokens, log_p, references in ((6.0, 3, -3.0, 1), (1.0, 1, -8.0, 3)):
            sums = {"_log_p": torch.tensor(log_p), "_references": references}
            output = merge_logs({"x-y": {**criterion_log(loss, tokens), **sums}}, PAIRS)
            log_pairs(CRITERION, [output], PAIRS)
            log_likelihoods([output], PAIRS)
    values = logged.get_smoothed_values()
    assert values["x-y_loss"] == pytest.approx(7 / 4 / math.log(2), abs=1e-3)
    assert values["x-y_ppl"] == pytest.approx(2 ** (7 / 2 / 4 / math.log(2)), abs=0.01)
    assert values["x-y_log_likelihood"] == values["log_likelihood"] == pytest.approx(-11 / 4)


def test_a_pair_without_a_batch_logs_nothing():
    outputs = [merge_logs({"x-y": criterion_log(6.0, 3)}, PAIRS)]
    assert not reduced(outputs, lambda logs: log_pairs(CRITERION, logs, ["y-x"]))


def test_what_is_derived_is_there_for_every_pair_and_empty_without_a_value():
    """So that it can be logged again after meters were reset, or read from a checkpoint."""
    outputs = [merge_logs({"x-y": criterion_log(6.0, 3)}, PAIRS)]
    values = reduced(outputs, lambda logs: log_pairs(CRITERION, logs, PAIRS))
    assert values["y-x_ppl"] is None and values["x-y_ppl"] > 1
    assert "y-x_loss" not in values


def test_what_is_derived_without_a_look_at_the_count_is_left_alone():
    """A mean over what is there would divide by 0; after a reset as before the first batch."""

    def mean(meters):
        counts = [meters.get(name).count for name in ("loss", "nll_loss") if meters.get(name)]
        return 1 / sum(counts)

    class Criterion:
        @staticmethod
        def reduce_metrics(logs):
            metrics.log_scalar("loss", sum(log["loss"] for log in logs), 2)
            metrics.log_derived("half", mean)

    outputs = [merge_logs({"x-y": criterion_log(6.0, 3)}, PAIRS)]
    with metrics.aggregate(new_root=True) as meters:
        log_pairs(Criterion(), outputs, PAIRS)
        assert (meters.get_smoothed_values()["x-y_half"]) == 0.5
        assert meters.get_smoothed_values()["y-x_half"] is None
        meters.reset()
        assert meters.get_smoothed_values()["x-y_half"] is None


def test_what_is_derived_from_values_that_are_not_shown():
    """They stay out of sight under the pair's name, and a value of 0 is a value."""

    class Criterion:
        @staticmethod
        def reduce_metrics(logs):
            metrics.log_scalar("_sum", sum(log["loss"] for log in logs))
            metrics.log_derived("half", lambda meters: meters["_sum"].avg / 2)

    for loss in (6.0, 0.0):
        output = merge_logs({"x-y": criterion_log(loss, 3)}, PAIRS)
        values = reduced([output], lambda logs: log_pairs(Criterion(), logs, PAIRS))
        assert values == {"x-y_half": loss / 2, "y-x_half": None}
    values = reduced([output], lambda logs: log_pairs(CRITERION, logs, ["x-y"]))
    assert values["x-y_ppl"] == 1.0


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
        log_bleu_summary(logs, PAIRS)

    values = reduced(outputs, log)
    expected = sacrebleu.corpus_bleu(hypotheses, [references]).score
    assert values["x-y_bleu"] == pytest.approx(expected, abs=0.011)
    assert values["y-x_bleu"] == pytest.approx(100, abs=0.011)
    assert values["worst_bleu"] == pytest.approx(expected, abs=0.011)
    assert values["bleu"] == pytest.approx((expected + 100) / 2, abs=0.011)


@pytest.fixture
def bleu_log():
    """Function (sums by pair of a batch, ...) -> what is logged of the batches, one by one."""

    def log(*batches):
        with metrics.aggregate(new_root=True) as logged:
            for sums in batches:
                logs = {pair: {**criterion_log(1.0, 1), **lines} for pair, lines in sums.items()}
                output = merge_logs(logs, PAIRS)
                for pair in PAIRS:
                    log_pair_bleu([output], pair)
                log_bleu_summary([output], PAIRS)
        return logged.get_smoothed_values()

    return log


def test_pairs_that_were_not_reached_have_no_bleu(bleu_log):
    """--max-valid-steps leaves them out; a pair that scores 0 counts."""
    lines = "a b c d e"
    perfect, nothing = bleu_sums([lines], [lines]), bleu_sums([""], [lines])
    assert bleu_log({"x-y": perfect}) == {"x-y_bleu": 100.0, "bleu": 100.0, "worst_bleu": 100.0}
    both = {"x-y_bleu": 100.0, "y-x_bleu": 0.0, "bleu": 50.0, "worst_bleu": 0.0}
    assert bleu_log({"x-y": perfect}, {"y-x": nothing}) == both
    assert bleu_log({"x-y": bleu_sums(["a"], [""])}) == {}


def test_batches_whose_references_are_empty_count_with_the_others(bleu_log):
    hypotheses, references = ["a b c d e", "a b c d e"], ["", "a b c d e"]
    parts = [{"x-y": bleu_sums(hypotheses[n : n + 1], references[n : n + 1])} for n in (0, 1)]
    whole = sacrebleu.corpus_bleu(hypotheses, [references]).score
    assert bleu_log(*parts)["x-y_bleu"] == pytest.approx(whole, abs=0.011) and whole < 100


def test_bleu_without_a_match_of_three_words_is_smoothed_as_by_default():
    hypotheses, references = ["a b c d e"], ["a b x d e"]
    outputs = [merge_logs({"x-y": {**criterion_log(1.0, 1), **bleu_sums(hypotheses, references)}},
                          PAIRS)]  # fmt: skip
    assert not any(name.startswith("_bleu") for name in outputs[0])  # of all pairs: no such sum
    bleu = reduced(outputs, lambda logs: log_pair_bleu(logs, "x-y"))["x-y_bleu"]
    assert bleu == round(sacrebleu.corpus_bleu(hypotheses, [references]).score, 2) > 0


def test_mean_log_likelihood_of_references():
    """Sums over batches and workers, divided by sentences; then the mean over the pairs."""
    smoothed = criterion_log(9.0, 3)  # nll_loss 4.5
    plain = {"loss": torch.tensor(6.0), "ntokens": 2, "nsentences": 2, "sample_size": 2}
    both_logs = likelihood_log(CRITERION, smoothed), likelihood_log(PLAIN, plain)
    assert [float(log["_log_p"]) for log in both_logs] == [-4.5, -6.0]
    assert [log["_references"] for log in both_logs] == [1, 2]
    assert likelihood_log(CRITERION, plain) == {}  # a loss that is no likelihood
    outputs = [
        merge_logs({"x-y": {**criterion_log(9.0, 3), "_log_p": torch.tensor(-p), "_references": n}},
                   PAIRS)
        for p, n in ((3.0, 1), (8.0, 3))
    ]  # fmt: skip
    other = {**criterion_log(9.0, 3), "_log_p": torch.tensor(-7.0), "_references": 2}
    outputs.append(merge_logs({"y-x": other}, PAIRS))
    values = reduced(outputs, lambda logs: log_likelihoods(logs, PAIRS))
    assert values["x-y_log_likelihood"] == pytest.approx(-11 / 4)
    assert values["y-x_log_likelihood"] == pytest.approx(-3.5)
    assert values["log_likelihood"] == pytest.approx((-11 / 4 - 3.5) / 2, abs=1e-3)
    assert "log_likelihood" not in reduced([criterion_log(6.0, 3)], lambda logs: None)
