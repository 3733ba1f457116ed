"""Waveforms from audio files."""

import sys
import wave
from types import ModuleType

import numpy as np
import pytest
import torch

from fairseq_ext.compat.versions.waveforms import converted, sox_is_missing


def test_what_is_not_asked_for_is_left():
    waveform = torch.rand(2, 50)
    assert converted(waveform, 8000)[0] is waveform
    assert converted(waveform, 8000, to_sample_rate=8000)[1] == 8000


def test_volume_and_channels():
    waveform = torch.tensor([[0.1, -0.4, 0.0], [0.3, 0.2, 0.2]])
    loud, rate = converted(waveform, 8000, normalize_volume=True, to_mono=True)
    torch.testing.assert_close(loud, torch.tensor([[0.5, -0.25, 0.25]]))
    assert rate == 8000
    assert not converted(torch.zeros(1, 4), 8000, normalize_volume=True)[0].isnan().any()


def test_another_rate_needs_torchaudio(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchaudio", None)
    monkeypatch.setitem(sys.modules, "torchaudio.functional", None)
    with pytest.raises(ImportError, match="pip install torchaudio.*8000 .*16000 are needed"):
        converted(torch.rand(1, 80), 8000, to_sample_rate=16000)


def test_another_rate():
    pytest.importorskip("torchaudio", reason="`converted` resamples with torchaudio")
    tone = torch.sin(torch.arange(8000) * 0.05)[None]
    faster, rate = converted(tone, 8000, to_sample_rate=16000)
    assert (faster.shape, rate) == ((1, 16000), 16000)
    torch.testing.assert_close(faster[:, 200:-200:2], tone[:, 100:-100], atol=0.02, rtol=0)


def test_arrays_of_fairseq():
    if sox_is_missing() is not None:
        pytest.skip("torchaudio has sox_effects")
    from fairseq.data.audio.audio_utils import convert_waveform

    array = np.array([[1.0, 2.0], [3.0, 6.0]], dtype=np.float32)
    mono, rate = convert_waveform(array, 16000, to_mono=True)
    assert isinstance(mono, np.ndarray) and (mono.tolist(), rate) == ([[2.0, 4.0]], 16000)


def test_files(tmp_path):
    pytest.importorskip("soundfile")
    from fairseq.data.audio.audio_utils import get_waveform

    samples = (np.sin(np.arange(400) / 9) * 20000).astype("<i2")
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(np.stack([samples, samples], axis=1).tobytes())
    waveform, rate = get_waveform(str(tmp_path / "a.wav"), normalization=False)
    assert rate == 16000
    np.testing.assert_allclose(waveform[0], samples, atol=0.01)


def test_mel_filters_have_names(monkeypatch):
    from fairseq.data.audio.audio_utils import get_mel_filters

    def mel(*, sr, n_fft, n_mels, fmin, fmax):  # as in librosa 0.10
        assert (sr, fmin, fmax) == (16000, 20, 8000)
        return np.ones((n_mels, n_fft // 2 + 1), dtype=np.float32)

    filters = ModuleType("librosa.filters")
    filters.mel = mel
    monkeypatch.setitem(sys.modules, "librosa", ModuleType("librosa"))
    monkeypatch.setitem(sys.modules, "librosa.filters", filters)
    assert get_mel_filters(16000, 64, 8, 20, 8000).shape == (8, 33)
