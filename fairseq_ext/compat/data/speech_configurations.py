"""What the YAML file of speech data says of its input."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.data.audio.data_cfg import S2SDataConfig
    from fairseq.data.audio.speech_to_text_dataset import SpeechToTextDataset
    from fairseq.data.audio.speech_to_text_joint_dataset import S2TJointDataConfig

logger = logging.getLogger(__name__)


@patch(
    "fairseq.data.audio.speech_to_text_dataset",
    because="fairseq 0.12.2: with use_audio_input: true, the transforms of the configuration are "
    "silently left out",
)
def transforms_without_effect_are_named(module: PatchedModule) -> None:
    """Warn of transforms, which are for features, where the input are waveforms."""
    dataset = module.SpeechToTextDataset
    build = dataset.__init__

    @functools.wraps(build)
    def __init__(self: SpeechToTextDataset, *args: Any, **options: Any) -> None:
        build(self, *args, **options)
        transforms = getattr(self.feature_transforms, "transforms", None)
        if self.cfg.use_audio_input and transforms:
            logger.warning(
                "'%s': transforms (%s) are for features and have no effect on waveforms "
                "(use_audio_input: true)",
                self.split,
                ", ".join(type(transform).__name__ for transform in transforms),
            )

    dataset.__init__ = __init__


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
