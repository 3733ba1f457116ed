"""Waveforms from audio files without `torchaudio.sox_effects`, which today's torchaudio lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from torch import Tensor


def converted(
    waveform: Tensor,
    sample_rate: int,
    normalize_volume: bool = False,
    to_mono: bool = False,
    to_sample_rate: int | None = None,
) -> tuple[Tensor, int]:
    """Return a waveform (channels, samples) and its sample rate after what is asked for.

    Args:
        waveform: (channels, samples).
        sample_rate: of the waveform.
        normalize_volume: scale it so that the largest sample is 1, as "gain -n" of SoX does.
        to_mono: take the mean of the channels.
        to_sample_rate: the sample rate that is wanted; torchaudio computes it.
    """
    if normalize_volume:
        waveform = waveform / waveform.abs().max().clamp(min=1e-10)
    if to_sample_rate is not None and to_sample_rate != sample_rate:
        try:
            from torchaudio.functional import resample
        except (ImportError, OSError) as error:
            raise ImportError(
                f"Please install torchaudio: pip install torchaudio. The audio has "
                f"{sample_rate} samples a second, {to_sample_rate} are needed"
            ) from error
        waveform, sample_rate = resample(waveform, sample_rate, to_sample_rate), to_sample_rate
    if to_mono and waveform.shape[0] > 1:
        waveform = waveform.mean(dim=0, keepdim=True)
    return waveform, sample_rate


def sox_is_missing() -> str | None:
    """Return None if torchaudio has no sox_effects, or is not installed; else that it has."""
    try:
        import torchaudio.sox_effects  # noqa: F401
    except (ImportError, OSError):  # OSError: a torchaudio for another torch
        return None
    return "not needed: torchaudio has sox_effects"


@patch(
    "fairseq.data.audio.audio_utils",
    because="torchaudio 2.11 has no sox_effects: every audio file ends in 'Please install "
    "torchaudio', whether it is installed or not",
    conditions=[sox_is_missing],
)
def waveforms_need_no_sox(module: PatchedModule) -> None:
    """Convert waveforms with torch, and read those that need no conversion without torchaudio."""
    import numpy as np
    import torch

    def convert_waveform(
        waveform: Any,
        sample_rate: int,
        normalize_volume: bool = False,
        to_mono: bool = False,
        to_sample_rate: int | None = None,
    ) -> tuple[Any, int]:
        settings = (sample_rate, normalize_volume, to_mono, to_sample_rate)
        if not isinstance(waveform, np.ndarray):
            return converted(waveform, *settings)
        result, sample_rate = converted(torch.from_numpy(waveform), *settings)
        return result.numpy(), sample_rate

    module.convert_waveform = convert_waveform


@patch(
    "fairseq.data.audio.audio_utils",
    because="librosa 0.10 takes the arguments of filters.mel by name only: log-mel spectrograms, "
    "Griffin-Lim and the scripts of speech synthesis end in a TypeError",
)
def mel_filters_by_name(module: PatchedModule) -> None:
    """Call librosa.filters.mel with names, which every version takes."""
    import torch

    def get_mel_filters(
        sample_rate: int, n_fft: int, n_mels: int, f_min: float, f_max: float
    ) -> Tensor:  # (n_mels, n_fft / 2 + 1)
        try:
            from librosa.filters import mel
        except ImportError as error:
            raise ImportError("Please install librosa: pip install librosa") from error
        filters = mel(sr=sample_rate, n_fft=n_fft, n_mels=n_mels, fmin=f_min, fmax=f_max)
        return torch.from_numpy(filters).float()

    module.get_mel_filters = get_mel_filters
