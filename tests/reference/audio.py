"""Filter banks as loops, from the definitions in Kaldi's documentation (Povey et al., 2011).

Legend: N samples, W samples of a frame, K terms of the Fourier transform, M banks, T frames.
"""

import cmath
import math

import numpy as np

FLOOR = 1.1920928955078125e-07  # the smallest step above one of a 32-bit number


def mel(frequency):
    """Of a frequency in Hz."""
    return 1127 * math.log(1 + frequency / 700)


def frame_features(frame, rate, banks):
    """(W,) samples -> (M + 1): logarithms of the banks, low ones first, and of the energy."""
    width = len(frame)
    mean = sum(frame) / width
    centred = [value - mean for value in frame]
    energy = sum(value * value for value in centred)
    windowed = []
    for i, value in enumerate(centred):
        emphasised = value - 0.97 * (centred[i - 1] if i > 0 else centred[0])
        hann = 0.5 - 0.5 * math.cos(2 * math.pi * i / (width - 1))
        windowed.append(emphasised * hann**0.85)
    terms = 1
    while terms < width:
        terms *= 2
    power = []
    for k in range(terms // 2 + 1):
        total = sum(x * cmath.exp(-2j * math.pi * i * k / terms) for i, x in enumerate(windowed))
        power.append(abs(total) ** 2)
    low, high = mel(20), mel(rate / 2)
    corner = [low + (high - low) * b / (banks + 1) for b in range(banks + 2)]
    features = []
    for b in range(banks):
        left, top, right = corner[b : b + 3]
        total = 0.0
        for k, value in enumerate(power):
            at = mel(k * rate / terms)
            if left < at <= top:
                total += value * (at - left) / (top - left)
            elif top < at < right:
                total += value * (right - at) / (right - top)
        features.append(math.log(max(total, FLOOR)))
    return [*features, math.log(max(energy, FLOOR))]


def deltas(rows):
    """(T, F) -> (T, F); where a neighbour is missing the first or last row stands for it."""
    last = len(rows) - 1
    slopes = np.zeros_like(rows)
    for t in range(len(rows)):
        for n in (1, 2):
            slopes[t] += n * (rows[min(t + n, last)] - rows[max(t - n, 0)])
    return slopes / (2 * (1 + 4))


def filter_banks(samples, rate, banks, window, hop):
    """(N,) samples -> (T, 3 (M + 1)); window and hop in samples."""
    frames, start = [], 0
    while start + window <= len(samples):
        frames.append(frame_features(samples[start : start + window], rate, banks))
        start += hop
    static = np.array(frames)
    first = deltas(static)
    return np.concatenate([static, first, deltas(first)], axis=1)
