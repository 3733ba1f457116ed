"""Optimizers, learning rates and criteria of plugins for fairseq 0.9 and 0.10."""

from argparse import Namespace

import pytest
import torch
from fairseq.criterions import FairseqCriterion
from fairseq.optim import FairseqOptimizer
from fairseq.optim.adam import FairseqAdamConfig
from fairseq.optim.lr_scheduler import FairseqLRScheduler


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
