"""Log-mel filter banks of recordings, as Kaldi's s5 recipes define them (Povey et al. 2011).

For a frame x_0 .. x_{W-1} of samples in the scale of 16-bit numbers::

    x_i   <- x_i - mean of the frame
    energy = log max(sum_i x_i^2, floor)
    x_i   <- (x_i - 0.97 x_{max(i-1, 0)}) (0.5 - 0.5 cos(2 pi i / (W - 1)))^0.85
    P_k    = |sum_i x_i exp(-2 pi sqrt(-1) i k / K)|^2,  K the power of two from W on
    mel(f) = 1127 ln(1 + f / 700)
    bank_b = log max(sum_k P_k triangle_b(mel(k rate / K)), floor)

The M triangles have their corners at M + 2 equally spaced mels from 20 Hz to rate / 2; triangle b
rises from corner b to one at corner b + 1 and falls to corner b + 2. There is no dither, so that
the same file gives the same numbers.

Deltas, over four neighbours, the first and last frame repeated where there is none::

    delta_t = sum_{n=1,2} n (x_{t+n} - x_{t-n}) / 10

Dimensions: N samples, T frames, M banks.
"""

import wave
from pathlib import Path
from typing import NamedTuple, Union

import numpy as np

LOWEST = 20.0  # Hz
PREEMPHASIS = 0.97
FLOOR = float(np.finfo(np.float32).eps)


class AudioError(ValueError):
    """A recording or a setting that cannot be used; the message names it and what is allowed."""


class Banks(NamedTuple):
    """What features are made of: rate in Hz, M, window and hop in milliseconds."""

    sample_rate: int
    mel_bins: int = 40
    window_ms: float = 25.0
    hop_ms: float = 10.0

    @property
    def window(self) -> int:
        """Return the samples of a frame."""
        return round(self.sample_rate * self.window_ms / 1000)

    @property
    def hop(self) -> int:
        """Return the samples from one frame to the next."""
        return round(self.sample_rate * self.hop_ms / 1000)

    @property
    def features(self) -> int:
        """Return the width of a frame: banks and energy, their deltas, the deltas of these."""
        return 3 * (self.mel_bins + 1)


def read_wav(path: Union[str, Path], sample_rate: int) -> np.ndarray:
    """Return the samples of a mono 16-bit PCM file, (N,) float64 in -32768 .. 32767.

    Raises AudioError naming the file unless it exists, is such a file, and has this rate in Hz.
    """
    try:
        with wave.open(str(path), "rb") as stream:
            kind = stream.getnchannels(), 8 * stream.getsampwidth(), stream.getframerate()
            announced = stream.getnframes()
            content = stream.readframes(announced)
    except FileNotFoundError:
        raise AudioError(f"there is no {path}") from None
    except (wave.Error, EOFError, OSError) as error:
        raise AudioError(f"{path} is no PCM wav file: {str(error) or 'it ends early'}") from error
    if kind != (1, 16, sample_rate):
        channels, bits, rate = kind
        raise AudioError(
            f"{path} has {channels} channels of {bits} bits at {rate} Hz; allowed: 1 channel of "
            f"16 bits at {sample_rate} Hz"
        )
    if len(content) % 2:
        raise AudioError(f"{path} ends within a sample; allowed: 2 bytes for each")
    if len(content) // 2 != announced:
        raise AudioError(
            f"{path} ends after {len(content) // 2} samples, its header announces {announced}; "
            "allowed: a whole file"
        )
    return np.frombuffer(content, dtype="<i2").astype(np.float64)


def is_silent(samples: np.ndarray) -> bool:
    """True if all samples (N,) are the same but for the last bit: there is nothing to hear."""
    return bool(np.ptp(samples) <= 2)


def mel(frequency: Union[float, np.ndarray]) -> np.ndarray:
    """Return mels of frequencies in Hz."""
    return 1127.0 * np.log1p(np.asarray(frequency) / 700.0)


def triangles(banks: Banks) -> np.ndarray:
    """Return the weights of the power spectrum in each bank: (M, K/2 + 1).

    Raises AudioError where a triangle lies between two frequencies of the spectrum.
    """
    size = 1 << (banks.window - 1).bit_length()  # K
    # mels of the K/2 + 1 frequencies of the spectrum
    frequencies = mel(np.arange(size // 2 + 1) * banks.sample_rate / size)
    corners = np.linspace(mel(LOWEST), mel(banks.sample_rate / 2), banks.mel_bins + 2)
    step = corners[1] - corners[0]
    # triangles of equal width in mels: 1 at their corner, 0 at both neighbours
    distance = np.abs(frequencies - corners[1:-1, None]) / step
    weights = np.maximum(0.0, 1.0 - distance)
    empty = np.flatnonzero(weights.sum(axis=1) == 0.0)
    if len(empty):
        raise AudioError(
            f"--mel-bins {banks.mel_bins}: bank {empty[0] + 1} holds no frequency of a window of "
            f"{banks.window} samples; allowed: fewer banks, or a longer --window-ms"
        )
    return weights


def static_features(samples: np.ndarray, banks: Banks, weights: np.ndarray) -> np.ndarray:
    """Return (T, M + 1) of samples (N,): the banks, then the energy.

    weights: ``triangles(banks)``. T = 1 + floor((N - W) / hop): only whole frames.
    """
    frames = np.lib.stride_tricks.sliding_window_view(samples, banks.window)[:: banks.hop]
    # the recorder's offset, which differs between recordings
    frames = frames - frames.mean(axis=1, keepdims=True)  # (T, W)
    energy = np.log(np.maximum((frames**2).sum(axis=1), FLOOR))  # (T,)
    # x_{max(i-1, 0)}
    before = np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    taper = np.hanning(banks.window) ** 0.85
    frames = (frames - PREEMPHASIS * before) * taper
    # K = 2 (width of a triangle's weights - 1): zeros behind the window
    spectrum = np.fft.rfft(frames, n=2 * (weights.shape[1] - 1), axis=1)
    power = spectrum.real**2 + spectrum.imag**2  # (T, K/2 + 1)
    log_banks = np.log(np.maximum(power @ weights.T, FLOOR))
    return np.concatenate([log_banks, energy[:, None]], axis=1)


def deltas(rows: np.ndarray) -> np.ndarray:
    """Return the deltas (T, F) of rows (T, F)."""
    # the first and the last frame repeated where there is no neighbour
    padded = np.concatenate([rows[:1]] * 2 + [rows] + [rows[-1:]] * 2)
    two_before, before, _, after, two_after = (
        padded[start : start + len(rows)] for start in range(5)
    )
    return (after - before + 2 * (two_after - two_before)) / 10


def filter_banks(samples: np.ndarray, banks: Banks, weights: np.ndarray) -> np.ndarray:
    """Return (T, 3 (M + 1)) float32 of samples (N,): static features, deltas, deltas of the deltas.

    Raises AudioError for a recording shorter than a window.
    """
    if len(samples) < banks.window:
        raise AudioError(
            f"{len(samples)} samples; allowed: at least a window, {banks.window} samples"
        )
    static = static_features(samples, banks, weights)
    first = deltas(static)
    return np.concatenate([static, first, deltas(first)], axis=1).astype(np.float32)
