"""--optimizer composite."""

import torch
from fairseq.optim.composite import FairseqCompositeOptimizer
from fairseq.optim.lr_scheduler.pass_through import PassThroughScheduleSchedule
from omegaconf import OmegaConf


def composite(*groups):
    """An optimizer of groups of one parameter each, whose rate is halved on a plateau."""
    schedule = {
        "_name": "reduce_lr_on_plateau",
        **{"lr_shrink": 0.5, "lr_threshold": 1e-4, "lr_patience": 0},
        **{"warmup_updates": 0, "warmup_init_lr": -1.0, "maximize_best_checkpoint_metric": False},
    }
    sgd = {"_name": "sgd", "momentum": 0.0, "weight_decay": 0.0}
    group = {"lr": [0.8], "lr_float": None, "optimizer": sgd, "lr_scheduler": schedule}
    parameters = []
    for name in groups:
        parameters.append(torch.nn.Parameter(torch.ones(2)))
        parameters[-1].param_group = name
    cfg = OmegaConf.create({"groups": {name: group for name in groups}})
    return FairseqCompositeOptimizer(cfg, parameters)


def test_each_optimizer_has_its_groups():
    first, second = composite("encoder", "decoder"), composite("encoder", "adapters")
    assert list(first.optimizers) == list(first.lr_schedulers) == ["encoder", "decoder"]
    assert list(second.optimizers) == list(second.lr_schedulers) == ["encoder", "adapters"]
    assert first.optimizers["encoder"] is not second.optimizers["encoder"]


def test_rates_of_groups_follow_the_validation():
    optimizer = composite("encoder", "decoder")
    schedule = PassThroughScheduleSchedule(None, optimizer)
    rates = []
    for epoch, loss in enumerate([5.0, 4.0, 4.5, 3.0], start=1):
        schedule.step_begin_epoch(epoch)
        schedule.step(epoch, loss)
        rates.append([group["lr"] for group in optimizer.param_groups])
    assert rates == [[0.8, 0.8], [0.8, 0.8], [0.4, 0.4], [0.4, 0.4]]
    schedule.step(5)  # an epoch without a validation
    assert optimizer.get_lr() == 0.4
