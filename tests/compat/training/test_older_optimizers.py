"""Optimizers and learning rates of plugins for fairseq 0.10."""

from argparse import Namespace

import torch
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
