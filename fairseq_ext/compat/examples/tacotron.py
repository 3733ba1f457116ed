"""The example textless_nlp: Tacotron's spectrograms with today's librosa."""

from __future__ import annotations

from typing import Any

from ..imported_examples import modules_of_examples
from ..module_overlay import overlay_names
from ..patch_registry import PatchedModule, patch

TACOTRON = "textless_nlp.gslm.unit2speech.tacotron2"
BECAUSE = (
    "librosa 0.10 takes arguments by name that Tacotron gives by position: {0} ends in a TypeError"
)


@patch(*modules_of_examples(f"{TACOTRON}.stft"), because=BECAUSE.format("its STFT"))
def tacotron_windows(module: PatchedModule) -> None:
    """Pad windows with the size by name."""
    pad_center = module.pad_center
    module.pad_center = lambda window, size: pad_center(window, size=size)


@patch(
    *modules_of_examples(f"{TACOTRON}.audio_processing"),
    because=BECAUSE.format("its inverse STFT, which its denoiser computes,"),
)
def tacotron_window_sums(module: PatchedModule) -> None:
    """Pad the squared window with the size by name."""
    pad_center = module.librosa_util.pad_center
    overlay_names(
        module, "librosa_util", pad_center=lambda window, size: pad_center(window, size=size)
    )


@patch(*modules_of_examples(f"{TACOTRON}.layers"), because=BECAUSE.format("its mel spectrogram"))
def tacotron_mel_filters(module: PatchedModule) -> None:
    """Make mel filters with names."""
    mel = module.librosa_mel_fn

    def librosa_mel_fn(rate: int, n_fft: int, n_mels: int, f_min: float, f_max: float) -> Any:
        return mel(sr=rate, n_fft=n_fft, n_mels=n_mels, fmin=f_min, fmax=f_max)

    module.librosa_mel_fn = librosa_mel_fn


@patch(*modules_of_examples(f"{TACOTRON}.utils"), because=BECAUSE.format("audio of another rate"))
def tacotron_resampling(module: PatchedModule) -> None:
    """Resample with the rates by name."""
    resample = module.librosa.resample

    def resampled(samples: Any, rate: int, other_rate: int) -> Any:
        return resample(samples, orig_sr=rate, target_sr=other_rate)

    overlay_names(module, "librosa", resample=resampled)
