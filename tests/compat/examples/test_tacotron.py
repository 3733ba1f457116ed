"""Tacotron of textless_nlp (fairseq_ext/compat/examples/tacotron.py)."""

from types import SimpleNamespace

import numpy as np

from fairseq_ext.compat.examples import tacotron


def pad_center(data, *, size):
    return np.pad(data, (size - len(data)) // 2)


def test_windows_have_their_size():
    module = SimpleNamespace(pad_center=pad_center)
    tacotron.tacotron_windows(module)
    assert module.pad_center(np.ones(2), 6).tolist() == [0, 0, 1, 1, 0, 0]
    module = SimpleNamespace(librosa_util=SimpleNamespace(__name__="util", pad_center=pad_center))
    module.librosa_util.__doc__ = None
    tacotron.tacotron_window_sums(module)
    assert module.librosa_util.pad_center(np.ones(2), 4).tolist() == [0, 1, 1, 0]


def test_filters_and_rates_have_names():
    module = SimpleNamespace(librosa_mel_fn=lambda **names: names)
    tacotron.tacotron_mel_filters(module)
    names = {"sr": 16000, "n_fft": 64, "n_mels": 8, "fmin": 0.0, "fmax": 8000.0}
    assert module.librosa_mel_fn(16000, 64, 8, 0.0, 8000.0) == names

    def resample(samples, *, orig_sr, target_sr):
        return samples, orig_sr, target_sr

    module = SimpleNamespace(librosa=SimpleNamespace(__name__="librosa", resample=resample))
    module.librosa.__doc__ = None
    tacotron.tacotron_resampling(module)
    assert module.librosa.resample([1], 8000, 16000) == ([1], 8000, 16000)
