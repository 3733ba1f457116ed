"""The loss scale of a training that goes on from a checkpoint is that of the uninterrupted one."""

from types import SimpleNamespace

import pytest
import torch
from fairseq.optim.amp_optimizer import AMPOptimizer
from fairseq.optim.fp16_optimizer import FP16Optimizer, MemoryEfficientFP16Optimizer
from fairseq.optim.sgd import SGD
from omegaconf import OmegaConf

SGD_OPTIONS = OmegaConf.create({"lr": [0.5], "momentum": 0.0, "weight_decay": 0.0})
# of single updates: the third one and the seventh overflow
LOSSES = [1, 1, float("inf"), 1, 1, 1, float("inf"), 1, 1, 1, 1, 1]


def settings(bf16=False):
    common = {
        "fp16_init_scale": 1024,
        "fp16_scale_window": 3,
        "fp16_scale_tolerance": 0.3,
        "threshold_loss_scale": None,
        "min_loss_scale": 1e-4,
        "bf16": bf16,
    }
    return OmegaConf.create({"common": common, "optimizer": None, "optimization": {}})


def exact_copies(cfg):
    weight = torch.nn.Parameter(torch.ones(1, dtype=torch.float16))
    exact = torch.nn.Parameter(torch.ones(1))
    exact.grad = torch.zeros(1)
    return weight, FP16Optimizer(cfg, [weight], SGD(SGD_OPTIONS, [exact]), [exact])


def without_copies(cfg):
    weight = torch.nn.Parameter(torch.ones(1, dtype=torch.float16))
    optimizer = SGD(SGD_OPTIONS, [weight])
    return weight, MemoryEfficientFP16Optimizer(cfg, [weight], optimizer, allow_unsupported=True)


def scales(weight, optimizer, losses):
    """The loss scale after each update."""
    after = []
    for loss in losses:
        optimizer.zero_grad()
        optimizer.backward((loss * weight.float()).sum())
        try:
            optimizer.clip_grad_norm(0)
            optimizer.step()
        except OverflowError:
            pass
        after.append(optimizer.scaler.loss_scale)
    return after


@pytest.mark.parametrize("build", [exact_copies, without_copies])
def test_scales_of_fp16(build):
    whole = scales(*build(settings()), LOSSES)
    assert len(set(whole)) > 1
    for stop in range(1, len(LOSSES)):
        weight, optimizer = build(settings())
        scales(weight, optimizer, LOSSES[:stop])
        other, resumed = build(settings())
        resumed.load_state_dict(optimizer.state_dict())
        assert scales(other, resumed, LOSSES[stop:]) == whole[stop:], stop


@pytest.mark.parametrize("build", [exact_copies, without_copies])
def test_states_without_counters(build):
    """Of --bf16, and of fairseq without the patch."""
    _, unscaled = build(settings(bf16=True))
    assert "loss_scale_counters" not in unscaled.state_dict()
    unscaled.load_state_dict(build(settings())[1].state_dict())
    assert unscaled.scaler is None
    _, optimizer = build(settings())
    optimizer.load_state_dict(unscaled.state_dict())
    assert optimizer.scaler.loss_scale == 1024


def amp(init_scale, window, device="cpu"):
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = object.__new__(AMPOptimizer)  # its own scaler is of CUDA
    optimizer.fp32_optimizer = SGD(SGD_OPTIONS, [weight])
    optimizer._grad_scaler = torch.amp.GradScaler(
        device, init_scale=init_scale, growth_interval=window
    )
    optimizer.min_loss_scale = 1e-4
    return weight, optimizer


def amp_scales(weight, optimizer, losses):
    after = []
    for loss in losses:
        weight.grad = None
        optimizer.backward(loss * weight.sum())
        optimizer.clip_grad_norm(0)
        optimizer.step()
        after.append(optimizer.scaler.get_scale())
    return after


@pytest.mark.skipif(not hasattr(torch, "amp") or not hasattr(torch.amp, "GradScaler"),
                    reason="before torch 2.3 only CUDA has a scaler")  # fmt: skip
def test_scales_of_amp():
    whole = amp_scales(*amp(64.0, 3), LOSSES)
    weight, optimizer = amp(64.0, 3)
    amp_scales(weight, optimizer, LOSSES[:6])
    other, resumed = amp(8.0, 3)  # --amp-init-scale is for the beginning
    resumed.load_state_dict(optimizer.state_dict())
    assert amp_scales(other, resumed, LOSSES[6:]) == whole[6:]
    # --amp-scale-window is of the run that goes on
    other, resumed = amp(8.0, 1)
    resumed.load_state_dict(optimizer.state_dict())
    assert amp_scales(other, resumed, [1]) == [2 * optimizer.scaler.get_scale()]


def test_amp_without_a_scale():
    """On a CPU."""
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = object.__new__(AMPOptimizer)
    optimizer.fp32_optimizer = SGD(SGD_OPTIONS, [weight])
    optimizer._grad_scaler = SimpleNamespace(state_dict=dict, is_enabled=lambda: False)
    assert "amp_scale" not in optimizer.state_dict()
    optimizer.load_state_dict({**optimizer.state_dict(), "amp_scale": {"scale": 2.0}})
    weight.grad = torch.tensor([3.0])
    assert float(optimizer.clip_grad_norm(0)) == 3
    weight.grad = torch.tensor([float("nan")])
    with pytest.raises(FloatingPointError, match="gradients are Nan/Inf"):
        optimizer.clip_grad_norm(0)
