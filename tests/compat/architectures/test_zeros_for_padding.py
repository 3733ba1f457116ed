"""Parts of a model read zeros in the place of padding, and only within a block."""

import torch

from fairseq_ext.compat.architectures.zeros_for_padding import (
    behind,
    number_of_frames,
    zeros_behind,
    zeros_in_all,
)


def test_places_behind_the_end():
    assert behind(torch.tensor([2, 0]), 3).tolist() == [[False, False, True], [True] * 3]


def test_frames_of_convolutions_one_after_the_other():
    extractor = torch.nn.Sequential(torch.nn.Conv1d(1, 1, 5, 2), torch.nn.Conv1d(1, 1, 3))
    samples = torch.tensor([20, 12, 3])
    expected = [max(extractor(torch.zeros(1, 1, n)).size(2), 1) if n > 8 else 1 for n in samples]
    assert number_of_frames(extractor, samples).tolist() == expected


def test_convolutions_read_no_padding_within_the_block():
    convolution = torch.nn.Conv1d(2, 2, 3, padding=1)
    frames, is_padding = torch.randn(1, 2, 5), torch.tensor([[False, False, False, True, True]])
    with zeros_in_all([convolution], is_padding):
        without = convolution(frames)
    torch.testing.assert_close(without, convolution(frames.masked_fill(is_padding[:, None], 0)))
    assert not torch.equal(without, convolution(frames))


def test_lengths_follow_the_strides():
    """A recording of three frames, of which the second convolution reads two."""
    layers = [torch.nn.Conv2d(1, 1, 3, stride=2, padding=1, bias=False) for _ in range(2)]
    frames = torch.randn(2, 1, 8, 4)
    with zeros_behind(layers, 8, torch.tensor([8, 3])):
        together = layers[1](layers[0](frames))
    short = layers[1](layers[0](frames[1:, :, :3]))  # nothing is behind its end
    torch.testing.assert_close(together[1:, :, : short.size(2)], short)
