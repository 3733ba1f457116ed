"""Masks of bytes mean what bool masks mean, in every type they are asked for."""

import pytest
import torch


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bool, torch.uint8])
def test_bytes_are_bool(dtype):
    from fairseq.modules.multihead_attention import _mask_for_xformers

    masked = torch.tensor([True, False, True])
    expected = _mask_for_xformers(masked, to_dtype=dtype)
    assert torch.equal(_mask_for_xformers(masked.to(torch.uint8), to_dtype=dtype), expected)
    assert expected.dtype == dtype


def test_the_type_is_kept_where_none_is_asked_for():
    from fairseq.modules.multihead_attention import _mask_for_xformers

    # xformers keeps where fairseq masks
    mask = _mask_for_xformers(torch.tensor([1, 0], dtype=torch.uint8))
    assert torch.equal(mask, torch.tensor([0, 1], dtype=torch.uint8))
    added = torch.tensor([float("-inf"), 0.0])
    assert torch.equal(_mask_for_xformers(added), added)
