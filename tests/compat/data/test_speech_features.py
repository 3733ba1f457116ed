"""Masks of speech: warnings of those without effect, and masks of frames that exist."""

import numpy as np
import pytest
import torch
from fairseq.data.audio.feature_transforms.specaugment import SpecAugmentTransform
from fairseq.data.audio.raw_audio_dataset import RawAudioDataset

FREQUENCIES = {"freq_mask_N": 1, "freq_mask_F": 3}
TIMES = {"time_mask_N": 1, "time_mask_T": 3}


@pytest.mark.parametrize(
    ("config", "warning"),
    [
        (FREQUENCIES, None),
        ({**FREQUENCIES, **TIMES, "time_mask_p": 1.0}, None),
        ({**FREQUENCIES, **TIMES}, "time_mask_N: 1 has no effect with time_mask_p: 0.0"),
        ({**FREQUENCIES, "freq_mask_F": 5}, "freq_mask_F: 5; allowed: at most 4"),
    ],
)
def test_masks_without_effect_are_named(config, warning, caplog):
    transform = SpecAugmentTransform.from_config_dict(config)
    for _ in range(2):
        assert transform(np.ones((6, 4), dtype=np.float32)).shape == (6, 4)
    assert caplog.text.count("specaugment") == (warning is not None)
    assert warning is None or warning in caplog.text


def waves(pad, **options):
    options = {"mask_channel_prob": 0, "mask_length": 2, "mask_prob": 0.9, **options}
    return RawAudioDataset(
        16000,
        pad=pad,
        compute_mask_indices=True,
        encoder_embed_dim=4,
        conv_feature_layers="[(4, 10, 2), (4, 3, 2)]",
        mask_selection="static",
        mask_other=0,
        no_mask_overlap=False,
        mask_min_space=1,
        **options,
    )


def test_masks_are_of_the_recording():
    sizes = [400, 203, 117]
    samples = [{"id": row, "source": torch.randn(size)} for row, size in enumerate(sizes)]
    frames = [((size - 10) // 2 + 1 - 3) // 2 + 1 for size in sizes]
    np.random.seed(1)
    ends = torch.zeros(3, dtype=torch.long)
    for _ in range(40):
        batch = waves(pad=True).collater(samples)
        masks = batch["net_input"]["mask_indices"]
        assert masks.shape == (3, frames[0]) and batch["sample_size"] == masks.sum()
        ends = torch.maximum(ends, (masks * torch.arange(1, frames[0] + 1)).amax(1))
    assert batch["net_input"]["padding_count"] == frames[0] - frames[2]
    # fairseq masks all frames but the last
    assert ends.tolist() == [count - 1 for count in frames]


@pytest.mark.parametrize("prob", [0, 0.9])
def test_masks_without_padding(prob):
    samples = [{"id": row, "source": torch.randn(100 + row)} for row in range(2)]
    inputs = waves(pad=False, mask_prob=prob).collater(samples)["net_input"]
    assert inputs["padding_count"] == 0
    assert (inputs["mask_indices"] is None) == (prob == 0)
    assert waves(pad=False).collater([]) == {}
