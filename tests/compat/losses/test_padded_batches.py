"""--pad-to-fixed-bsz."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fairseq.criterions.adaptive_loss import AdaptiveLoss
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.data import Dictionary, MonolingualDataset, TokenBlockDataset
from fairseq.modules import AdaptiveSoftmax

LINES = [torch.tensor([4, 5, 6, 2]), torch.tensor([5, 2])]


class Unigram(torch.nn.Module):
    """Words do not depend on their context."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.decoder = torch.nn.Module()
        self.states = torch.nn.Parameter(torch.randn(4))

    def forward(self, src_tokens, src_lengths):
        return self.states.expand(*src_tokens.shape, 4), None

    def get_normalized_probs(self, output, log_probs):
        return torch.log_softmax(output[0].repeat(1, 1, 2), dim=-1)

    def get_targets(self, sample, output):
        return sample["target"]


class Adaptive(Unigram):
    """The same with an adaptive softmax."""

    def __init__(self):
        super().__init__()
        self.decoder.adaptive_softmax = AdaptiveSoftmax(8, 4, [6], dropout=0.0, factor=1.0)


def batch(lines):
    """The two lines, filled up to a number of lines."""
    dictionary = Dictionary()
    sizes = np.array([len(line) for line in LINES])
    pad, eos = dictionary.pad(), dictionary.eos()
    blocks = TokenBlockDataset(LINES, sizes, None, pad, eos, "eos", include_targets=True)
    dataset = MonolingualDataset(
        blocks, sizes, dictionary, shuffle=False, targets=["future"], pad_to_bsz=lines
    )
    return dataset.collater([dataset[0], dataset[1]])


def task_of(**options):
    return SimpleNamespace(target_dictionary=Dictionary(), args=SimpleNamespace(**options))


def test_several_targets_of_a_sentence_count():
    criterion = CrossEntropyCriterion(task_of(pad_to_fixed_bsz=False), sentence_avg=True)
    sample = batch(None)
    _, size, log = criterion(Unigram(), {**sample, "nsentences": 1})
    assert size == log["sample_size"] == log["nsentences"] == 2


@pytest.mark.parametrize("sentence_avg, size", [(False, 6), (True, 2)])
@pytest.mark.parametrize(
    "build, model",
    [
        (CrossEntropyCriterion, Unigram),
        (AdaptiveLoss, Adaptive),
        (lambda *arguments: LabelSmoothedCrossEntropyCriterion(*arguments, 0.1), Unigram),
    ],
    ids=["cross_entropy", "adaptive_loss", "label_smoothed_cross_entropy"],
)
def test_lines_of_padding_change_nothing(build, model, sentence_avg, size):
    task = task_of(pad_to_fixed_bsz=True)
    criterion, model = build(task, sentence_avg), model()
    filled_up = batch(5)
    assert filled_up["target"].shape == (5, 4)
    loss, sample_size, log = criterion(model, filled_up)
    expected, expected_size, expected_log = criterion(model, batch(None))
    assert sample_size == expected_size == size
    torch.testing.assert_close(loss, expected)
    assert {**log, "loss": 0, "nll_loss": 0} == {**expected_log, "loss": 0, "nll_loss": 0}
