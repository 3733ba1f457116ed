"""Quantization noise: of 8 bits (--quant-noise-scalar) and of blocks (--quant-noise-pq)."""

import numpy as np
import pytest
import torch
from common import inprocess
from fairseq import checkpoint_utils
from fairseq.modules import MultiheadAttention, PositionalEmbedding
from fairseq.modules.quant_noise import quant_noise
from fairseq.modules.quantization.scalar import ops, quantize_model_
from fairseq.trainer import Trainer

from fairseq_ext.compat.checkpoints.refusals import CheckpointMismatch


def rounded(values, low, high):
    """NumPy: each of 256 equal steps from low to high, 0 being one of them."""
    step = (high - low) / 255
    zero = np.round(-low / step)
    return (np.clip(np.round(values / step) + zero, 0, 255) - zero) * step


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_one_scale_for_a_tensor(dtype):
    weight = torch.randn(6, 5, generator=torch.Generator().manual_seed(1)).to(dtype)
    quantized, scale, zero_point = ops.emulate_int(weight, bits=8, method="tensor")
    assert {part.dtype for part in (quantized, scale, zero_point)} == {dtype}
    if dtype == torch.float32:
        values = weight.double().numpy()
        expected = rounded(values, values.min(), values.max())
        assert quantized.numpy() == pytest.approx(expected, abs=1e-6)
        again, _, _ = ops.emulate_int(weight, 8, "tensor", scale=scale, zero_point=zero_point)
        assert torch.equal(again, quantized)


def test_a_scale_for_each_channel():
    weight = torch.randn(6, 5, generator=torch.Generator().manual_seed(1))
    weight *= torch.tensor([1.0, 10.0, 0.1, 5.0, 2.0])
    quantized, scale, _ = ops.emulate_int(weight, bits=8, method="channel")
    assert scale.shape == (5,)
    for channel in range(5):
        values = weight[:, channel].double().numpy()
        step = 2 * np.abs(values).max() / 255  # symmetric about 0, in 256 steps
        steps = quantized[:, channel].double().numpy() / step
        assert steps == pytest.approx(np.round(steps), abs=1e-4)
        assert np.abs(steps - values / step).max() <= 0.5 + 1e-4


def test_a_histogram():
    weight = torch.randn(60, 5, generator=torch.Generator().manual_seed(1))
    quantized, scale, _ = ops.emulate_int(weight, bits=8, method="histogram")
    assert (quantized - weight).abs().mean() < scale


def test_a_training_quantizes(tiny_training, tmp_path):
    words = [*tiny_training, "--quant-noise-scalar", 0.5, "--max-update", 2, "--no-save"]
    records = inprocess.train(*words, "--save-dir", tmp_path)
    assert any("train_loss" in record for record in records)


BUILDERS = [
    lambda: torch.nn.Linear(16, 6),
    lambda: torch.nn.Embedding(6, 16),
    lambda: torch.nn.Conv2d(16, 6, (2, 4)),
]


@pytest.mark.parametrize("build", BUILDERS)
def test_noise_of_blocks_leaves_the_parameter(build):
    part = quant_noise(build(), p=0.5, block_size=8)
    names, before = list(part.state_dict()), part.weight.detach().clone()
    parameter = part.weight
    inputs = torch.tensor([0, 3]) if part.weight.shape == (6, 16) and len(names) == 1 else None
    if inputs is None:
        inputs = torch.randn(2, 16, *[5] * (part.weight.ndim - 2))
    outputs = [part(inputs) for _ in range(4)]
    assert part.weight is parameter and torch.equal(part.weight, before)
    assert list(part.state_dict()) == names
    assert not torch.equal(outputs[0], outputs[1])
    part.eval()
    assert torch.equal(part(inputs), part(inputs))


def test_noise_drops_blocks_and_scales_the_others():
    """y = x W' with W' 0 or W / (1 - p) in blocks; the gradients are those of W' and of x."""
    linear = quant_noise(torch.nn.Linear(16, 6, bias=False), p=0.25, block_size=8)
    weight = linear.weight.detach()
    noised = linear(torch.eye(16)).t().detach()  # (6, 16)
    blocks = (noised / weight).view(6, 2, 8)
    factors = {round(number, 3) for number in blocks.mean(dim=2).flatten().tolist()}
    assert factors <= {0.0, 1.333} and blocks.std(dim=2).max() < 1e-5
    torch.manual_seed(5)
    noised = linear(torch.eye(16)).t().detach()
    torch.manual_seed(5)
    x = torch.randn(3, 16, generator=torch.Generator().manual_seed(1), requires_grad=True)
    linear(x).sum().backward()
    torch.testing.assert_close(x.grad, noised.sum(0).expand(3, 16))
    torch.testing.assert_close(linear.weight.grad, x.detach().sum(0).expand(6, 16))


def test_a_pass_that_fails_leaves_no_noise_behind():
    linear = quant_noise(torch.nn.Linear(16, 6), p=0.5, block_size=8)
    parameter, before = linear.weight, linear.weight.detach().clone()
    with pytest.raises(RuntimeError):
        linear(torch.randn(2, 15))
    linear(torch.randn(2, 16))
    assert linear.weight is parameter and torch.equal(parameter, before)


def test_blocks_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="^--quant-noise-pq-block-size 5 is not allowed"):
        quant_noise(torch.nn.Linear(16, 6), p=0.5, block_size=5)


def test_self_attention_has_noise():
    attention = MultiheadAttention(16, 2, self_attention=True, q_noise=0.5, qn_block_size=8)
    x = torch.randn(4, 3, 16)
    noised = [attention(x, x, x)[0] for _ in range(2)]
    assert not torch.equal(*noised)
    plain = MultiheadAttention(16, 2, self_attention=True)
    plain.load_state_dict(attention.state_dict())
    torch.testing.assert_close(attention.eval()(x, x, x)[0], plain.eval()(x, x, x)[0])


def test_whole_sentences_and_steps_are_quantized_alike():
    model = torch.nn.ModuleList([MultiheadAttention(16, 2, self_attention=True)])
    quantize_model_(model.eval(), p=1, bits=6, method="tensor")
    attention, state = model[0], {}
    x, future = torch.randn(4, 3, 16), torch.full((4, 4), -torch.inf).triu(1)
    attention(x, x, x, attn_mask=future)  # activations have the scale of the first batch
    whole, _ = attention(x, x, x, attn_mask=future)
    steps = [attention(step, step, step, incremental_state=state)[0] for step in x.split(1)]
    torch.testing.assert_close(torch.cat(steps), whole)


def test_learned_positions_are_not_quantized():
    model = torch.nn.ModuleList([PositionalEmbedding(9, 8, 1, learned=True), torch.nn.Linear(8, 8)])
    assert quantize_model_(model, p=0.5, method="tensor") == ["1"]
    words = torch.tensor([[4, 5, 1]])
    torch.testing.assert_close(model[0](words)[0], model[0].weight[[2, 3, 1]])


@pytest.fixture
def stages(tmp_path):
    """A configuration that quantizes three layers one after the other."""
    layers = "[decoder.layers.0.fc1, decoder.layers.0.fc2, encoder.layers.0.fc1]"
    centroids = "n_centroids: {Linear: {key: in_features, value: {'*': 4}}}"
    (tmp_path / "stages.yaml").write_text(f"{centroids}\nlayers_to_quantize: {layers}\n")
    return tmp_path / "stages.yaml"


@pytest.mark.parametrize(
    "schedule, expected",
    [
        (("fixed", "--lr", "1e-3,2e-3,3e-3"), [1e-3, 2e-3, 3e-3]),
        (("inverse_sqrt", "--warmup-updates", 1), [0, 1e-3, 1e-3 * 2**-0.5]),
    ],
)
def test_the_rate_goes_on_after_a_stage(
    schedule, expected, tiny_training, stages, tmp_path, monkeypatch
):
    """Three epochs of one update, each of which begins with the quantization of a layer."""
    rates, stock = [], Trainer.train_step

    def train_step(self, *args, **kwargs):
        rates.append(self.get_lr())
        return stock(self, *args, **kwargs)

    monkeypatch.setattr(Trainer, "train_step", train_step)
    words = [*tiny_training, "--max-tokens", 4000, "--max-epoch", 3, "--no-save"]
    words += ["--quantization-config-path", stages, "--lr-scheduler", *schedule]
    inprocess.train(*words, "--save-dir", tmp_path)
    assert rates == pytest.approx(expected)


def test_quantized_checkpoints_are_named(tiny_training, stages, tmp_path):
    """They hold centroids, which neither a training that goes on nor a search has."""
    words = [*tiny_training, "--max-epoch", 3, "--quantization-config-path", stages]
    words += ["--save-dir", tmp_path, "--no-epoch-checkpoints", "--disable-validation"]
    inprocess.train(*words)
    with pytest.raises(CheckpointMismatch, match=r"fc1 and others are product-quantized; "):
        inprocess.train(*words, "--max-epoch", 6)
    with pytest.raises(CheckpointMismatch, match=r"--quantization-config-path"):
        checkpoint_utils.load_model_ensemble_and_task([f"{tmp_path}/checkpoint_last.pt"])


@pytest.mark.parametrize("padding_mode", ["zeros", "circular", "reflect"])
def test_convolutions_are_quantized(padding_mode):
    convolution = torch.nn.Conv2d(3, 4, (2, 3), padding=(1, 2), padding_mode=padding_mode)
    model = torch.nn.ModuleList([convolution])
    x = torch.randn(2, 3, 6, 5, generator=torch.Generator().manual_seed(1))
    expected = model[0](x)
    quantize_model_(model.eval(), p=0.5, method="tensor")
    torch.testing.assert_close(model[0](x), expected, rtol=0, atol=0.05)
    assert not torch.equal(model[0](x), expected)
