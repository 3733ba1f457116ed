"""The optimiser fused_adam beside fairseq's adam, and in a training that stops and goes on."""

import inspect
import types

import pytest
import torch
from common import inprocess
from fairseq import checkpoint_utils
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from fairseq.registry import REGISTRIES
from omegaconf import OmegaConf

from fairseq_ext.common import optimizer
from fairseq_ext.common.optimizer import FusedAdam, FusedAdamConfig, parse_betas


def config(epsilon=1e-9):
    values = {"lr": [0.01], "adam_betas": "(0.8, 0.95)", "adam_eps": epsilon, "weight_decay": 0.1}
    return OmegaConf.create({**values, "fp16_adam_stats": False})


def parameters():
    torch.manual_seed(1)
    return [torch.nn.Parameter(torch.randn(3, 4)), torch.nn.Parameter(torch.randn(5))]


@pytest.mark.parametrize("epsilon", [1e-9, 0.5])
@pytest.mark.parametrize("fused", [True, False])
def test_steps_are_those_of_fairseq(monkeypatch, fused, epsilon):
    """Also for a parameter that some updates do not touch, for a rate that changes, and where
    epsilon is no smaller than the gradients; half of the updates from a checkpoint."""
    if not fused:
        monkeypatch.setattr(optimizer, "has_fused_kernel", lambda params: False)
    both = [(kind, parameters()) for kind in (FusedAdam, FairseqAdam)]
    built = [(kind(config(epsilon), params), params) for kind, params in both]
    torch.manual_seed(2)
    for step in range(12):
        if step == 6:
            state, params = built[0][0].state_dict(), built[0][1]
            built[0] = FusedAdam(config(epsilon), params), params
            built[0][0].set_lr(0.0)
            built[0][0].step()  # moves nothing; the checkpoint's steps count afterwards
            built[0][0].load_state_dict(state)
        gradients = [torch.randn(3, 4), torch.randn(5)]
        for built_optimizer, params in built:
            built_optimizer.set_lr(0.01 * (1 + step))
            for param, gradient in zip(params, gradients):
                param.grad = gradient.clone()
            if step % 3 == 1:
                params[1].grad = None
            built_optimizer.step()
    for ours, theirs in zip(built[0][1], built[1][1]):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_defaults_are_those_of_fairseq():
    ours, stock = FusedAdamConfig(), FairseqAdamConfig()
    assert (ours.adam_eps, ours.weight_decay) == (stock.adam_eps, stock.weight_decay)
    assert parse_betas(ours.adam_betas) == stock.adam_betas


def test_fairseq_finds_its_options():
    assert REGISTRIES["optimizer"]["registry"]["fused_adam"] is FusedAdam
    assert REGISTRIES["optimizer"]["dataclass_registry"]["fused_adam"] is FusedAdamConfig


@pytest.mark.parametrize(
    "version, device, expected",
    [
        ("1.13.1", "cuda", False),
        ("2.0.0", "cuda", True),
        ("2.3.1", "cpu", False),
        ("2.4.0+cpu", "cpu", True),
    ],
)
def test_the_kernel_is_used_where_torch_has_it(monkeypatch, version, device, expected):
    monkeypatch.setattr(torch, "__version__", version)
    of_device = types.SimpleNamespace(device=types.SimpleNamespace(type=device))
    assert optimizer.has_fused_kernel([of_device]) is expected


@pytest.mark.parametrize("fused", [True, False])
def test_torch_is_asked_for_the_kernel(monkeypatch, fused):
    if "fused" not in inspect.signature(torch.optim.AdamW).parameters:
        pytest.skip("torch before 2.0 has no fused kernel")
    monkeypatch.setattr(optimizer, "has_fused_kernel", lambda params: fused)
    assert bool(FusedAdam(config(), parameters())._optimizer.defaults["fused"]) is fused


def test_groups():
    first, second = parameters()
    groups = [{"params": [first]}, {"params": [second]}]
    assert len(FusedAdam(config(), groups).param_groups) == 2


@pytest.mark.parametrize(
    "betas", ["0.9", "(0.9, 1.0)", "(1.0, 0.9)", "(0.9,)", "(-0.1, 0.9)", "two", "('a', 1)"]
)
def test_bad_betas_name_themselves(betas):
    with pytest.raises(ValueError, match="--adam-betas .*allowed: two numbers"):
        parse_betas(betas)


def test_a_resumed_run_is_the_uninterrupted_run(toy_corpus, tmp_path):
    def run(folder, updates):
        inprocess.train(
            *(toy_corpus.two, "--task", "dual_translation", "-s", "xx", "-t", "yy"),
            *("--arch", "dual_transformer_tiny", "--criterion", "cross_entropy"),
            *("--optimizer", "fused_adam", "--adam-betas", "(0.9, 0.98)", "--weight-decay", 0.01),
            *("--lr", 0.01, "--batch-size", 16, "--max-update", updates, "--dropout", 0),
            *("--save-dir", folder, "--disable-validation", "--no-epoch-checkpoints"),
            *("--save-interval-updates", 3),
        )
        return checkpoint_utils.torch.load(folder / "checkpoint_last.pt", weights_only=True)

    whole = run(tmp_path / "whole", 6)
    run(tmp_path / "parts", 3)
    parts = run(tmp_path / "parts", 6)
    for name, value in whole["model"].items():
        assert torch.equal(value, parts["model"][name]), name


@pytest.mark.parametrize("fused", [True, False])
def test_a_step_that_amp_skips_does_not_count(monkeypatch, fused):
    """Neither in the parameters nor in epsilon, which a parameter's age scales."""
    if not hasattr(torch.amp, "GradScaler"):
        pytest.skip("torch before 2.3 scales no loss on the CPU")
    if not fused:
        monkeypatch.setattr(optimizer, "has_fused_kernel", lambda params: False)
    results = []
    for overflows in ((), (0, 2)):
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
        scaler.scale(torch.ones(()))  # makes the scale
        params = parameters()
        built = FusedAdam(config(0.5), params)
        for step in range(5 + len(overflows)):
            for parameter in params:
                factor = torch.inf if step in overflows else scaler.get_scale()
                parameter.grad = torch.ones_like(parameter) * factor
            scaler.unscale_(built.optimizer)
            scaler.step(built.optimizer)
            scaler.update()
        ages = {int(state["step"]) for state in built.optimizer.state.values()}
        assert ages == set(built.optimizer.ages.values()) == {5}
        results.append(params)
    for expected, actual in zip(*results):
        assert torch.equal(expected, actual)
