"""Sides of labels with other criterions, options of the data and orders of the sides."""

import pytest
import torch
from dual.lstm_support import PAD, build, write_dictionaries
from dual.test_supervised_labels import KINDS, Case

from fairseq_ext.dual.lstm_classifier.criterion import (
    DualLabelCrossEntropy,
    DualLabelCrossEntropyConfig,
)

ARCHS = ("dual_lstm_classifier", "dual_supervised_lstm_classifier")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_dictionaries(tmp_path_factory.mktemp("dictionaries"))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    "criterion", ["label_smoothed_cross_entropy", "chunked_label_smoothed_cross_entropy"]
)
def test_smoothing_over_what_can_be_no_label_is_refused(data, arch, criterion):
    """Its loss would be the mean of -1e4, the score of what is no label."""
    words = ("--arch", arch, "--criterion", criterion, "--label-smoothing")
    with pytest.raises(ValueError, match="--label-smoothing 0.1 with a side of labels.*allowed: 0"):
        build(data, *words, 0.1)
    build(data, *words, 0)


@pytest.mark.parametrize("arch", ARCHS)
def test_a_sentence_has_one_way_to_be_counted(data, arch):
    for criterion in ("dual_label_cross_entropy", "dual_supervised"):
        with pytest.raises(ValueError, match="--sentence-avg: with labels --label-weight says"):
            build(data, "--arch", arch, "--criterion", criterion, "--sentence-avg")


def test_the_criterion_of_labels_asks_for_a_side_of_labels(dual_task):
    task, _ = dual_task()
    cfg = DualLabelCrossEntropyConfig(sentence_avg=False)
    with pytest.raises(ValueError, match="dual_label_cross_entropy: the model has no side of lab"):
        DualLabelCrossEntropy.build_criterion(cfg, task)


@pytest.mark.parametrize("label_weight", ["text", "token"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_padded_labels_count_what_labels_count(data, kind, label_weight):
    """--required-seq-len-multiple 8: losses and gradients of both directions stay as they are."""
    case = Case(data, kind)
    outcomes = []
    for multiple in (1, 8):
        sample = case.sample()
        for part in sample.values():
            inputs = part["net_input"]
            for holder, name, left in (
                (part, "target", False),
                (inputs, "prev_output_tokens", False),
                (inputs, "src_tokens", True),
            ):
                missing = -holder[name].size(1) % multiple
                sides = (missing, 0) if left else (0, missing)
                holder[name] = torch.nn.functional.pad(holder[name], sides, value=PAD)
        case.model.zero_grad()
        loss, size, logs = case.criterion(0.5, label_weight)(case.model, sample)
        loss.backward()
        grads = [p.grad for p in case.model.parameters() if p.grad is not None]
        outcomes.append((loss, size, logs, grads))
    (loss, size, logs, grads), (padded_loss, padded_size, padded_logs, padded_grads) = outcomes
    assert padded_loss.item() == pytest.approx(loss.item(), rel=1e-9)
    assert int(padded_size) == int(size)
    assert {name: sorted(log) for name, log in logs.items()} == {
        name: sorted(log) for name, log in padded_logs.items()
    }
    assert len(grads) == len(padded_grads)
    for gradient, expected_gradient in zip(grads, padded_grads):
        torch.testing.assert_close(gradient, expected_gradient)
