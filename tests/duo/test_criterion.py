"""Losses and scores of labels by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from common.words import dictionary_with
from fairseq import metrics
from torch import nn

from fairseq_ext.duo.classifier.criterion import LabelCrossEntropy, counts, macro_f1

LABELS = ("a", "b", "c")
FIRST, END = 4, 2
TRUE = [0, 1, 1]
SCORES = [[2.0, 0.5, -1.0], [1.5, 0.0, 0.25], [-0.5, 3.0, 1.0]]  # of which the second is wrong


class Classifier(nn.Module):
    """Gives every text its scores."""

    def __init__(self):
        super().__init__()
        self.scores = nn.Parameter(torch.tensor(SCORES, dtype=torch.double))

    def forward(self, rows):
        return self.scores[rows]

    def get_normalized_probs(self, output, log_probs):
        return output.log_softmax(dim=1) if log_probs else output.softmax(dim=1)


@pytest.fixture
def criterion():
    return LabelCrossEntropy(SimpleNamespace(target_dictionary=dictionary_with(*LABELS)))


def batch(*rows):
    target = torch.tensor([[FIRST + TRUE[row], END] for row in rows])
    return {"net_input": {"rows": list(rows)}, "target": target, "ntokens": target.numel()}


def losses():
    """-log P of each text's label."""
    scores = np.array(SCORES)
    return np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(3), TRUE]


def test_loss_and_gradient(criterion):
    model = Classifier()
    loss, size, log = criterion(model, batch(0, 1, 2))
    assert loss.item() == log["loss"].item() == pytest.approx(losses().sum()) and size == 3
    assert not log["loss"].requires_grad
    loss.backward()
    gradient = np.exp(SCORES) / np.exp(SCORES).sum(axis=1, keepdims=True) - np.eye(3)[TRUE]
    assert model.scores.grad.numpy() == pytest.approx(gradient)
    unsummed = criterion(model, batch(0, 1, 2), reduce=False)[0]
    assert unsummed.tolist() == pytest.approx(losses())


@pytest.mark.parametrize("training", [False, True])
def test_scores_are_those_of_all_batches(criterion, training):
    """Two of three labels are right; F1 of a and b is 2/3 each, and c is nowhere."""
    criterion.train(training)
    outputs = [criterion(Classifier(), batch(*rows))[2] for rows in ((0, 1), (2,))]
    with metrics.aggregate(new_root=True) as meters:
        for output in outputs:
            LabelCrossEntropy.reduce_metrics([output])
    values = meters.get_smoothed_values()
    assert values["loss"] == pytest.approx(losses().mean() / np.log(2), abs=1e-4)
    assert values["accuracy"] == 66.67
    assert values.get("macro_f1") == (None if training else 66.67)
    assert LabelCrossEntropy.logging_outputs_can_be_summed()


def test_macro_f1_by_hand():
    """Label 0: 1 of 2 found, 1 of 1 true -> 2/3; label 1: 1 of 1, 1 of 2 -> 2/3; 2 never occurs."""
    table = counts(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), 3)
    assert table.tolist() == [[1, 1, 0], [2, 1, 0], [1, 2, 0]]
    assert macro_f1(table) == 66.67


@pytest.mark.parametrize(
    "predicted, true, score",
    [([0, 1], [0, 1], 100.0), ([0, 0], [0, 1], 33.33), ([0, 1], [0, 0], 33.33), ([1], [0], 0.0)],
    ids=["all right", "one never predicted", "one never true", "all wrong"],
)
def test_labels_of_macro_f1(predicted, true, score):
    """The mean is over labels that are predicted or true."""
    assert macro_f1(counts(torch.tensor(predicted), torch.tensor(true), 3)) == score
