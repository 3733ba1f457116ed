"""Each parameter of Adafactor has a rate of its own."""

import math
from types import SimpleNamespace

import pytest
import torch
from fairseq.optim.adafactor import Adafactor, FairseqAdafactor

SETTINGS = {"lr": 0.01, "scale_parameter": True, "relative_step": False}


def parameters():
    generator = torch.Generator().manual_seed(1)
    values = [torch.randn(3, 4, generator=generator) * 0.05 for _ in range(4)]
    gradients = [torch.randn(3, 4, generator=generator) for _ in values]
    result = [torch.nn.Parameter(value.clone()) for value in values]
    for parameter, gradient in zip(result, gradients):
        parameter.grad = gradient
    return result


@pytest.mark.parametrize("settings", [{}, {"beta1": 0.9, "weight_decay": 0.1}])
def test_parameters_are_updated_as_alone(settings):
    """Together in one group, or each with an optimiser of its own."""
    together, alone = parameters(), parameters()
    optimizer = Adafactor(together, **SETTINGS, **settings)
    others = [Adafactor([parameter], **SETTINGS, **settings) for parameter in alone]
    for _ in range(3):
        for chosen in (optimizer, *others):
            for group in chosen.param_groups:
                group["lr"] = 0.01  # as the scheduler does before each update
            chosen.step()
    for parameter, same in zip(together, alone):
        assert torch.equal(parameter, same)


def test_the_rate_of_the_scheduler_remains():
    optimizer = Adafactor(parameters(), **SETTINGS)
    optimizer.step()
    (group,) = optimizer.param_groups
    assert group["lr"] == 0.01 and len(group["params"]) == 4


def test_the_state_is_stored_and_read():
    optimizer, first = Adafactor(parameters(), **SETTINGS), parameters()
    optimizer.step()
    state = optimizer.state_dict()
    assert [len(group["params"]) for group in state["param_groups"]] == [4]
    again = Adafactor(first, **SETTINGS)
    again.load_state_dict(state)
    assert [again.state[parameter]["step"] for parameter in first] == [1] * 4


def test_relative_steps_need_no_rate(caplog):
    """The first steps have the rate min(0.01, 1 / sqrt(step)), whatever the schedule sets."""
    settings = {"adafactor_eps": "(1e-30, 1e-3)", "clip_threshold": 1.0, "decay_rate": -0.8}
    settings |= {"beta1": None, "weight_decay": 0.0, "scale_parameter": False}
    args = SimpleNamespace(lr=[5.0], relative_step=True, warmup_init=True, **settings)
    (parameter, *_), (same, *_) = parameters(), parameters()
    optimizer = FairseqAdafactor(args, [parameter])
    assert "--relative-step" in caplog.text
    other = Adafactor([same], lr=math.nan, scale_parameter=False, relative_step=False)
    for step in range(1, 4):
        optimizer.set_lr(5.0)
        optimizer.step()
        other.param_groups[0]["lr"] = min(1e-6 * step, 1 / math.sqrt(step))
        other.step()
        assert torch.equal(parameter, same)
