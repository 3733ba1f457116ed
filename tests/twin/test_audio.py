"""Filter banks and deltas against the NumPy loops."""

import numpy as np
import pytest

from fairseq_ext.twin.audio import AudioError, Banks, deltas, filter_banks, triangles
from reference import audio as reference


def noise(length, seed=0, scale=3000):
    return np.random.default_rng(seed).normal(scale=scale, size=length).round()


@pytest.mark.parametrize(
    "rate, bins, window_ms, hop_ms, length",
    [(8000, 5, 4.0, 3.0, 32), (8000, 7, 4.5, 2.0, 77), (2000, 3, 16.0, 5.0, 61)],
)
def test_against_loops(rate, bins, window_ms, hop_ms, length):
    banks = Banks(rate, bins, window_ms, hop_ms)
    samples = noise(length) + 500 + 2000 * np.sin(np.arange(length))
    features = filter_banks(samples, banks, triangles(banks))
    expected = reference.filter_banks(list(samples), rate, bins, banks.window, banks.hop)
    assert features.dtype == np.float32 and features.shape == expected.shape
    assert features.shape[1] == banks.features
    np.testing.assert_allclose(features, expected, rtol=1e-5, atol=1e-5)


def test_silence_is_finite():
    banks = Banks(8000)
    features = filter_banks(np.zeros(400), banks, triangles(banks))
    expected = np.full((3, banks.features), np.log(reference.FLOOR))
    expected[:, 41:] = 0
    np.testing.assert_allclose(features, expected, atol=1e-6)


def test_a_tone_is_where_it_belongs():
    """The bank whose triangle has its tip nearest to the tone is the loudest."""
    banks, tone = Banks(8000), 1000.0
    samples = 8000 * np.sin(2 * np.pi * tone / 8000 * np.arange(4000))
    energies = filter_banks(samples, banks, triangles(banks))[10, :40]
    low, high = reference.mel(20), reference.mel(4000)
    assert energies.argmax() == round((reference.mel(tone) - low) / (high - low) * 41) - 1


def test_deltas_of_a_line_are_its_slope():
    line = 3.0 * np.arange(9)[:, None] + np.array([0.0, 5.0])
    np.testing.assert_allclose(deltas(line)[2:-2], 3.0)


def test_a_bank_without_frequencies_is_named():
    with pytest.raises(AudioError, match="--mel-bins 40: bank 1 holds no .*32 samples; allowed"):
        triangles(Banks(8000, 40, 4.0))
