"""--memory-efficient-fp16: gradients are divided by the loss scale in single precision."""

from argparse import Namespace

import pytest
import torch
from fairseq.optim import FairseqOptimizer
from fairseq.optim.adafactor import FairseqAdafactor
from fairseq.optim.adam import FairseqAdam
from fairseq.optim.adamax import FairseqAdamax
from fairseq.optim.composite import CompositeOptimizer, FairseqCompositeOptimizer
from fairseq.optim.fp16_optimizer import MemoryEfficientFP16Optimizer
from fairseq.optim.nag import FairseqNAG
from omegaconf import OmegaConf

SCALE = 1024.0
ADAM = {"adam_betas": "(0.9, 0.98)", "adam_eps": 1e-12, "use_old_adam": True, "tpu": False}
ADAMAX = {"adamax_betas": "(0.9, 0.98)", "adamax_eps": 1e-12, "no_bias_correction": False}
ADAFACTOR = {
    **{"adafactor_eps": "(1e-30, 1e-3)", "clip_threshold": 1.0, "decay_rate": -0.8, "beta1": 0.9},
    **{"scale_parameter": True, "relative_step": False, "warmup_init": False},
}
CLASSES = {
    "adam": (FairseqAdam, {**ADAM, "fp16_adam_stats": False}),
    "adamax": (FairseqAdamax, ADAMAX),
    "nag": (FairseqNAG, {"momentum": 0.9}),
    "adafactor": (FairseqAdafactor, ADAFACTOR),
}


class SharedNormSGD(torch.optim.SGD):
    """An optimiser of a plugin, whose step depends on all gradients."""

    supports_memory_efficient_fp16 = True

    def step(self, closure=None):
        values = [weight for group in self.param_groups for weight in group["params"]]
        gradients = [weight.grad.float() for weight in values if weight.grad is not None]
        norm = torch.sqrt(sum((gradient**2).sum() for gradient in gradients))
        for weight in values:
            if weight.grad is not None:
                exact = weight.data.float() - 0.1 * weight.grad.float() / norm
                weight.data.copy_(exact)


class PluginOptimizer(FairseqOptimizer):
    def __init__(self, cfg, params):
        super().__init__(cfg)
        self._optimizer = SharedNormSGD(params, lr=0.1)


def settings(bf16):
    common = {
        **{"fp16_init_scale": SCALE, "fp16_scale_window": 100, "fp16_scale_tolerance": 0.0},
        **{"threshold_loss_scale": None, "min_loss_scale": 1e-4, "bf16": bf16},
    }
    return OmegaConf.create({"common": common, "optimizer": None, "optimization": {}})


def composite(params):
    """Of Adam and NAG."""
    optimizer = FairseqCompositeOptimizer.__new__(FairseqCompositeOptimizer)
    FairseqOptimizer.__init__(optimizer, None)
    parts = (build("adam", params[:2]), build("nag", params[2:]))
    optimizer.optimizers = dict(zip("ab", parts))
    optimizer._optimizer = CompositeOptimizer(optimizer.optimizers)
    return optimizer


def build(name, params):
    if name == "composite":
        return composite(params)
    if name == "plugin":
        return PluginOptimizer(None, params)
    kind, options = CLASSES[name]
    return kind(Namespace(lr=[0.01], weight_decay=0.1, **options), params)


def parameters(dtype):
    torch.manual_seed(1)
    values = (torch.randn(5), torch.randn(4, 3), torch.randn(3), torch.randn(2))
    return [torch.nn.Parameter(value.half().to(dtype)) for value in values]


def gradients(update, dtype):
    """Those that the backward pass of a scaled loss leaves; the last parameter has none."""
    torch.manual_seed(10 + update)
    sizes = (1e-5, 1e-6, 3e-2)
    shapes = [weight.shape for weight in parameters(dtype)[:3]]
    return [(SCALE * size * torch.randn(shape)).to(dtype) for size, shape in zip(sizes, shapes)]


def rates(optimizer, update):
    """A learning rate that changes, with which NAG corrects its momentum."""
    for group in optimizer.param_groups:
        group["lr"] = 0.01 / (1 + update)


def without_copies(name, dtype, clip_norm):
    """Return the parameters and the norms after four updates as of --memory-efficient-fp16."""
    weights = parameters(dtype)
    inner = build(name, weights)
    optimizer = MemoryEfficientFP16Optimizer(settings(dtype == torch.bfloat16), weights, inner)
    norms = []
    for update in range(4):
        rates(inner, update)
        optimizer.zero_grad()
        for weight, gradient in zip(weights, gradients(update, dtype)):
            weight.grad = gradient
        optimizer.multiply_grads(1e-3 if dtype == torch.float16 else 1e-3 / SCALE)
        norms.append(float(optimizer.clip_grad_norm(clip_norm)))
        optimizer.step()
        assert all(w.grad is None or w.grad.dtype == dtype for w in weights)
    return weights, norms, inner


def reference(name, dtype, clip_norm):
    """The same, with parameters and gradients in float64 that are rounded after each update."""
    weights = [torch.nn.Parameter(weight.detach().double()) for weight in parameters(dtype)]
    inner = build(name, weights)
    norms = []
    for update in range(4):
        rates(inner, update)
        for weight, gradient in zip(weights, gradients(update, dtype)):
            weight.grad = gradient.double() * (1e-3 / SCALE)
        norms.append(float(torch.sqrt(sum((w.grad**2).sum() for w in weights[:3]))))
        added = 0.0 if dtype == torch.float16 else 1e-6  # as in fairseq
        share = min(1.0, clip_norm / (norms[-1] + added)) if clip_norm else 1.0
        for weight in weights[:3]:
            weight.grad.mul_(share)
        inner.step()
        for weight in weights:
            weight.data = weight.data.to(dtype).double()
    return weights, norms, inner


@pytest.mark.parametrize("clip_norm", [0.0, 1e-5])
@pytest.mark.parametrize("name", [*CLASSES, "composite", "plugin"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_steps_are_those_of_double_precision(dtype, name, clip_norm):
    weights, norms, _ = without_copies(name, dtype, clip_norm)
    expected, exact_norms, _ = reference(name, dtype, clip_norm)
    assert norms == pytest.approx(exact_norms, rel=1e-5)
    ulp = torch.finfo(dtype).eps
    for weight, other in zip(weights, expected):
        assert torch.allclose(weight.double(), other, rtol=ulp, atol=1e-5)


@pytest.mark.parametrize("clip_norm", [0.0, 1e-5])
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_states_are_those_of_double_precision(dtype, name, clip_norm):
    """Averages of gradients, of which 16 bits would hold the smallest as zero."""
    weights, _, inner = without_copies(name, dtype, clip_norm)
    expected, _, exact = reference(name, dtype, clip_norm)
    for weight, other in zip(weights[:3], expected):
        state, exact_state = inner.optimizer.state[weight], exact.optimizer.state[other]
        for key, values in exact_state.items():
            if torch.is_tensor(values):
                assert torch.allclose(
                    state[key].double(), values.double(), rtol=1e-4, atol=1e-30
                ), key
    assert weights[3] not in inner.optimizer.state


def test_groups_of_a_composite_optimizer():
    weights = parameters(torch.float16)
    before = [weight.detach().clone() for weight in weights]
    optimizer = MemoryEfficientFP16Optimizer(settings(False), weights, composite(weights))
    optimizer.zero_grad()
    for weight, gradient in zip(weights, gradients(0, torch.float16)):
        weight.grad = 1000 * gradient
    optimizer.clip_grad_norm(0.0)
    optimizer.step(groups=["b"])
    changed = [not torch.equal(*pair) for pair in zip(before, weights)]
    assert changed == [False, False, True, False]


@pytest.mark.parametrize("name", [*CLASSES, "composite", "plugin"])
def test_groups_remain(name):
    weights, _, inner = without_copies(name, torch.float16, 0.0)
    groups = [group["params"] for group in inner.param_groups]
    assert [weight for group in groups for weight in group] == weights
