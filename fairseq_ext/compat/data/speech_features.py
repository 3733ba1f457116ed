"""Masks of speech: those of SpecAugment, and those that the data of wav2vec 2.0 bring along."""

from __future__ import annotations

import functools
import logging
from typing import Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after, call_before

logger = logging.getLogger(__name__)


@patch(
    "fairseq.data.audio.feature_transforms.specaugment",
    because="fairseq 0.12.2: time_mask_N of specaugment has no effect without time_mask_p, nor has "
    "the whole transform where freq_mask_F is above the number of features",
)
def masks_without_effect_are_named(module: PatchedModule) -> None:
    """Warn of masks that are asked for and never set."""
    transform = module.SpecAugmentTransform

    def warn_of_time(self: Any, *args: Any, **options: Any) -> None:
        self.has_warned = False
        if self.time_mask_n > 0 and self.time_mask_p <= 0:
            logger.warning(
                "specaugment: time_mask_N: %s has no effect with time_mask_p: %s, the part of a "
                "recording that a mask may have; allowed: above 0, for example 1.0",
                self.time_mask_n,
                self.time_mask_p,
            )

    def warn_of_frequency(self: Any, spectrogram: Any) -> None:
        """Read (frames, features), which are not masked yet."""
        if spectrogram.shape[1] < self.freq_mask_f and not self.has_warned:
            self.has_warned = True
            logger.warning(
                "specaugment: nothing is masked with freq_mask_F: %s; allowed: at most %s, the "
                "number of features",
                self.freq_mask_f,
                spectrogram.shape[1],
            )

    call_after(transform, "__init__", warn_of_time)
    call_before(transform, "__call__", warn_of_frequency)


@patch(
    "fairseq.data.audio.raw_audio_dataset",
    because="fairseq 0.12.2: the masks of precompute_mask_indices are computed for frames that "
    "reach behind the end of a recording, and fail without padding",
)
def masks_are_of_the_recording(module: PatchedModule) -> None:
    """Compute the frames of each recording as the model does."""
    dataset = module.RawAudioDataset
    stock = dataset.collater

    @functools.wraps(stock)
    def collater(self: Any, samples: list[dict[str, Any]]) -> dict[str, Any]:
        if not self.compute_mask_indices:
            return stock(self, samples)
        import torch

        self.compute_mask_indices = False
        try:
            batch = stock(self, samples)
        finally:
            self.compute_mask_indices = True
        if not batch:
            return batch
        inputs = batch["net_input"]
        count, size = inputs["source"].shape
        sizes = torch.full((count,), size)
        if inputs.get("padding_mask") is not None:
            sizes = sizes - inputs["padding_mask"].sum(1)
        frames = self._get_mask_indices_dims(size)
        lengths = [max(1, self._get_mask_indices_dims(length)) for length in sizes.tolist()]
        inputs["padding_count"] = frames - min(lengths)
        is_padding = torch.arange(frames) >= torch.tensor(lengths).unsqueeze(1)
        masks = self._compute_mask_indices((count, frames, self._C), is_padding)
        inputs["mask_indices"], inputs["mask_channel_indices"] = masks
        if masks[0] is not None:
            batch["sample_size"] = masks[0].sum().item()
        return batch

    dataset.collater = collater
