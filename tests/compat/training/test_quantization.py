"""Quantization noise of 8 bits (--quant-noise-scalar) without CUDA."""

import numpy as np
import pytest
import torch
from common import inprocess
from fairseq.modules.quantization.scalar import ops


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
