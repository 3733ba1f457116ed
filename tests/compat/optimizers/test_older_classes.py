"""Optimizers, learning rates and criteria of plugins for fairseq 0.9 and 0.10."""

from argparse import Namespace

import pytest
import torch
from fairseq.criterions import FairseqCriterion, LegacyFairseqCriterion
from fairseq.criterions.ctc import CtcCriterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.criterions.masked_lm import MaskedLmLoss
from fairseq.criterions.sentence_prediction import (
    SentencePredictionConfig,
    SentencePredictionCriterion,
)
from fairseq.data import Dictionary
from fairseq.optim import FairseqOptimizer
from fairseq.optim.adam import FairseqAdamConfig
from fairseq.optim.lr_scheduler import FairseqLRScheduler
from fairseq.tasks import FairseqTask


class OlderOptimizer(FairseqOptimizer):
    """Its options are those of the command line, without a dataclass."""

    def __init__(self, args, params):
        super().__init__(args)
        self._optimizer = torch.optim.SGD(params, **self.optimizer_config)

    @property
    def optimizer_config(self):
        return {"lr": self.args.lr[0]}


class OlderSchedule(FairseqLRScheduler):
    """A schedule in the same way."""

    def __init__(self, args, optimizer):
        super().__init__(args, optimizer)
        self.optimizer.set_lr(self.args.lr[0] / 2)


def test_older_optimizers_and_schedules_have_their_options():
    options = Namespace(lr=[0.5])
    optimizer = OlderOptimizer(options, [torch.nn.Parameter(torch.zeros(1))])
    assert optimizer.args is options
    assert OlderSchedule(options, optimizer).args is options
    assert optimizer.get_lr() == 0.25


def test_today_s_have_none():
    assert not hasattr(FairseqOptimizer(FairseqAdamConfig()), "args")
    assert not hasattr(FairseqLRScheduler(FairseqAdamConfig(), None), "args")


class OlderCriterion(FairseqCriterion):
    """A criterion of fairseq 0.9: it takes the options of the command line and the task."""

    def __init__(self, args, task):
        super().__init__(args, task)
        self.epsilon = args.smoothing


class NewCriterion(FairseqCriterion):
    """A criterion of today: it takes single options."""

    def __init__(self, task, smoothing):
        super().__init__(task)
        self.epsilon = smoothing


@pytest.mark.parametrize("kind", [OlderCriterion, NewCriterion])
def test_criteria_are_made_as_they_ask_for(kind):
    options, task = Namespace(smoothing=0.1), object()
    criterion = kind.build_criterion(options, task)
    assert (criterion.task, criterion.epsilon) == (task, 0.1)
    assert hasattr(criterion, "args") == (kind is OlderCriterion)


class OlderEntropy(LabelSmoothedCrossEntropyCriterion):
    """A criterion of fairseq 0.9 that derives from one of fairseq."""

    def __init__(self, args, task):
        super().__init__(args, task)
        self.weight = self.args.own_weight


class Words:
    """A task with a dictionary."""

    target_dictionary = Dictionary()


def test_criteria_that_derive_are_made_with_options_and_task():
    options = Namespace(sentence_avg=False, label_smoothing=0.2, own_weight=3, report_accuracy=True)
    criterion = OlderEntropy.build_criterion(options, Words)
    assert (criterion.task, criterion.padding_idx) == (Words, 1)
    assert (criterion.eps, criterion.sentence_avg, criterion.weight) == (0.2, False, 3)
    assert criterion.report_accuracy and criterion.ignore_prefix_size == 0
    # as fairseq makes them, and by place
    present = LabelSmoothedCrossEntropyCriterion.build_criterion(options, Words)
    assert (present.eps, hasattr(present, "args")) == (0.2, False)
    assert LabelSmoothedCrossEntropyCriterion(Words, False, 0.2).eps == 0.2


class WeighedSentences(SentencePredictionCriterion):
    """A criterion for fairseq 0.10 that derives: it takes the task and single options."""

    def __init__(self, task, classification_head_name, regression_target, head_weight=1.0):
        super().__init__(task, classification_head_name, regression_target)
        self.head_weight = head_weight


class NamedWords(MaskedLmLoss):
    """The same with names."""

    def __init__(self, task, tpu=False):
        super().__init__(task=task, tpu=tpu)


class Recordings(CtcCriterion):
    """The same of the criterion of speech recognition, whose fourth option has another name."""

    def __init__(self, task, wer_args, zero_infinity, sentence_avg, remove_bpe):
        super().__init__(task, wer_args, zero_infinity, sentence_avg, remove_bpe)


class Letters(FairseqTask):
    """A task with a dictionary, made as such."""

    target_dictionary = Dictionary()


class Wordless(FairseqTask):
    """A task without a dictionary."""

    target_dictionary = None


def test_criteria_that_derive_are_made_with_single_options():
    task = Wordless(Namespace())
    options = Namespace(classification_head_name="h", regression_target=True, head_weight=2.0)
    criterion = WeighedSentences.build_criterion(options, task)
    assert (criterion.task, criterion.classification_head_name) == (task, "h")
    assert (criterion.regression_target, criterion.head_weight) == (True, 2.0)
    assert NamedWords.build_criterion(Namespace(tpu=True), task).tpu
    with pytest.raises(TypeError, match="no option 'bpe'"):
        SentencePredictionCriterion(task, "h", regression_target=False, bpe=1)
    # as fairseq makes them
    cfg = SentencePredictionConfig(classification_head_name="k")
    present = SentencePredictionCriterion.build_criterion(cfg, task)
    assert (present.task, present.classification_head_name) == (task, "k")


def test_legacy_criteria_are_made_as_before():
    class Legacy(LegacyFairseqCriterion):
        def __init__(self, args, task):
            super().__init__(args, task)
            self.size = self.args.size

    options = Namespace(size=2)
    for criterion in (Legacy(options, Words), Legacy.build_criterion(options, Words)):
        assert (criterion.size, criterion.padding_idx) == (2, 1)


class OlderAdam(FairseqOptimizer):
    """An optimizer of fairseq 0.10 with a dataclass."""


def test_older_optimizers_with_a_dataclass_have_their_options():
    options = FairseqAdamConfig()
    assert OlderAdam(options).args is options


@pytest.mark.parametrize(
    ("remove_bpe", "way"), [("sentencepiece", "sentencepiece"), (None, "letter")]
)
def test_the_criterion_of_speech_recognition_derives(remove_bpe, way):
    options = Namespace(
        wer_args=None, zero_infinity=True, sentence_avg=False, remove_bpe=remove_bpe
    )
    criterion = Recordings.build_criterion(options, Letters(Namespace()))
    assert (criterion.zero_infinity, criterion.sentence_avg) == (True, False)
    assert (criterion.post_process, criterion.w2l_decoder) == (way, None)


def test_missing_options_are_set():
    """registry.set_defaults of fairseq 0.10: what is there stays."""
    from fairseq import registry

    class OldOptimizer:
        @staticmethod
        def add_args(parser):
            parser.add_argument("--rate", default=0.5, type=float)
            parser.add_argument("--note", required=True)
            parser.add_argument("--fast", action="store_true")

    options = Namespace(fast=True)
    registry.set_defaults(options, OldOptimizer)
    assert options == Namespace(fast=True, rate=0.5)
    registry.set_defaults(options, object)
    assert len(vars(options)) == 2
