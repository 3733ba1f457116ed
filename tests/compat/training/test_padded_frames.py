"""A recording has the same frames alone and in a batch with longer ones."""

import pytest
import torch
from fairseq.models.speech_to_text.s2t_transformer import Conv1dSubsampler
from fairseq.modules.conformer_layer import ConformerEncoderLayer

LENGTHS = [29, 22, 21, 9, 1]


@pytest.fixture
def recordings():
    """Padded recordings (B, T, 6) and their lengths (B,)."""
    torch.manual_seed(1)
    frames = torch.randn(len(LENGTHS), max(LENGTHS), 6, dtype=torch.float64)
    lengths = torch.tensor(LENGTHS)
    return frames * (torch.arange(max(LENGTHS)) < lengths[:, None]).unsqueeze(2), lengths


@pytest.mark.parametrize("kernels", [[5, 5], [3, 3, 3], [3]])
def test_subsampled_frames(recordings, kernels):
    frames, lengths = recordings
    subsample = Conv1dSubsampler(6, 8, 4, kernels).double()
    together, sizes = subsample(frames, lengths)
    assert sizes.tolist() == subsample.get_out_seq_lens_tensor(lengths).tolist()
    for row, length in enumerate(LENGTHS):
        alone, size = subsample(frames[row : row + 1, :length], lengths[row : row + 1])
        assert size == sizes[row] == len(alone)
        torch.testing.assert_close(together[:size, row], alone[:, 0], rtol=0, atol=1e-12)
        assert not together[size:, row].any()


def test_frames_of_a_conformer(recordings):
    frames, lengths = recordings
    layer = ConformerEncoderLayer(6, 8, 2, 0.0, depthwise_conv_kernel_size=5, use_fp16=False)
    layer = layer.double().eval()
    is_padding = torch.arange(max(LENGTHS)) >= lengths[:, None]
    together, _ = layer(frames.transpose(0, 1), is_padding)
    for row, length in enumerate(LENGTHS):
        alone, _ = layer(frames[row : row + 1, :length].transpose(0, 1), is_padding[:1, :length])
        torch.testing.assert_close(together[:length, row], alone[:, 0], rtol=0, atol=1e-12)
    assert not layer.conv_module.depthwise_conv._forward_pre_hooks
