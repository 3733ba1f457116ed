"""What the YAML file of speech data says of its input."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after

if TYPE_CHECKING:
    import numpy as np
    from fairseq.data.audio.data_cfg import S2SDataConfig, S2TDataConfig
    from fairseq.data.audio.feature_transforms.delta_deltas import DeltaDeltas
    from fairseq.data.audio.speech_to_text_dataset import SpeechToTextDataset
    from fairseq.data.audio.speech_to_text_joint_dataset import S2TJointDataConfig
    from numpy.typing import NDArray

logger = logging.getLogger(__name__)
STOCK_WINDOW = 5  # frames


@patch(
    "fairseq.data.audio.data_cfg",
    because="fairseq 0.12.2: waveforms are standardised (use_audio_input: true) whatever the "
    "configuration of the data says of standardize_audio",
)
def waveforms_are_standardised_as_asked(module: PatchedModule) -> None:
    """Respect `standardize_audio`; where it is missing, standardise as stock does, and say so.

    Models that were trained without the line have seen standardised waveforms.
    """
    config = module.S2TDataConfig

    def warn_without_the_line(self: S2TDataConfig, yaml_path: Path) -> None:
        if self.use_audio_input and "standardize_audio" not in self.config:
            logger.warning(
                "%s: waveforms are standardised; write standardize_audio: true, or false for a "
                "new model that is to read them as they are",
                yaml_path,
            )

    def standardize_audio(self: S2TDataConfig) -> bool:
        """Whether each waveform has mean 0 and variance 1."""
        return bool(self.use_audio_input and self.config.get("standardize_audio", True))

    call_after(config, "__init__", warn_without_the_line)
    config.standardize_audio = property(standardize_audio)


@patch(
    "fairseq.data.audio.feature_transforms.delta_deltas",
    because="fairseq 0.12.2: win_length of the transform delta_deltas has no effect: the window "
    "has 5 frames",
)
def deltas_have_their_window(module: PatchedModule) -> None:
    """Compute both deltas in the window that the configuration names; warn where stock did not."""
    transform = module.DeltaDeltas

    def warn_of_window(self: DeltaDeltas, win_length: int = STOCK_WINDOW) -> None:
        if win_length != STOCK_WINDOW:
            logger.warning(
                "delta_deltas: win_length %s is read; a model that was trained without this layer "
                "needs win_length: %s, which stock takes in any case",
                win_length,
                STOCK_WINDOW,
            )

    def __call__(self: DeltaDeltas, spectrogram: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return features, deltas and their deltas, (frames, 3 * features)."""
        from torchaudio.functional import compute_deltas

        assert len(spectrogram.shape) == 2, "spectrogram must be a 2-D tensor."
        features = module.torch.from_numpy(spectrogram).T
        deltas = compute_deltas(features, self.win_length)
        parts = [features, deltas, compute_deltas(deltas, self.win_length)]
        rows: NDArray[np.float32] = module.torch.cat(parts).T.numpy()
        return rows

    call_after(transform, "__init__", warn_of_window)
    transform.__call__ = __call__


@patch(
    "fairseq.data.audio.speech_to_text_dataset",
    because="fairseq 0.12.2: with use_audio_input: true, the transforms of the configuration are "
    "silently left out",
)
def transforms_without_effect_are_named(module: PatchedModule) -> None:
    """Warn of transforms, which are for features, where the input are waveforms."""

    def warn_of_transforms(self: SpeechToTextDataset, *args: Any, **options: Any) -> None:
        transforms = getattr(self.feature_transforms, "transforms", None)
        if self.cfg.use_audio_input and transforms:
            logger.warning(
                "'%s': transforms (%s) are for features and have no effect on waveforms "
                "(use_audio_input: true)",
                self.split,
                ", ".join(type(transform).__name__ for transform in transforms),
            )

    call_after(module.SpeechToTextDataset, "__init__", warn_of_transforms)


@patch(
    "fairseq.data.audio.data_cfg",
    because="fairseq 0.12.2: models of speech_to_speech count the channels of delta_deltas only "
    "where it is among the transforms of _train, not of *, and end in a RuntimeError",
)
def channels_are_those_of_the_transforms(module: PatchedModule) -> None:
    """Count the channels that the transforms of the training set give."""

    def input_transformed_channels(self: S2SDataConfig) -> int:
        """Return the number of channels of the input that the model reads."""
        transforms = self.get_feature_transforms("train", True)["transforms"] or []
        channels: int = self.input_channels
        return 3 * channels if "delta_deltas" in transforms else channels

    module.S2SDataConfig.input_transformed_channels = property(input_transformed_channels)


@patch(
    "fairseq.data.audio.speech_to_text_joint_dataset",
    because="fairseq 0.12.2: the paths of src_bpe_tokenizer and src_pre_tokenizer are relative to "
    "the present folder only, those of bpe_tokenizer to the configuration as well",
)
def source_tokenizers_are_found(module: PatchedModule) -> None:
    """Look for files of the tokenizers of the source beside the configuration, too."""
    configuration = module.S2TJointDataConfig

    def src_pre_tokenizer(self: S2TJointDataConfig) -> dict[str, Any]:
        """Return the tokenizer of the source and its options."""
        return _beside(self, "src_pre_tokenizer", {"tokenizer": None})

    def src_bpe_tokenizer(self: S2TJointDataConfig) -> dict[str, Any]:
        """Return the sub-word coder of the source and its options."""
        return _beside(self, "src_bpe_tokenizer", {"bpe": None})

    configuration.src_pre_tokenizer = property(src_pre_tokenizer)
    configuration.src_bpe_tokenizer = property(src_bpe_tokenizer)


def _beside(
    configuration: S2TJointDataConfig, name: str, default: dict[str, Any]
) -> dict[str, Any]:
    """Return an entry whose files may be beside the configuration."""
    entry = configuration.config.get(name, default)
    result: dict[str, Any] = configuration._auto_convert_to_abs_path(entry)
    return result
