"""Masks of bytes mean what bool masks mean, in every type they are asked for."""

from argparse import Namespace

import pytest
import torch

import fairseq_ext


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


class OlderTensor(torch.Tensor):
    """Stands in for torch.Tensor, which a plugin changes for its process."""


@pytest.mark.skipif(
    torch.__version__.startswith("1."), reason="torch before 2.0 takes masks of bytes"
)
@pytest.mark.parametrize("name", ["masked_fill", "masked_fill_"])
def test_masks_of_plugins(name):
    from fairseq_ext.compat.versions import byte_masks

    values = torch.zeros(3).as_subclass(OlderTensor)
    mask = torch.tensor([1, 0, 1])
    with pytest.raises(RuntimeError, match="boolean masks"):
        getattr(values, name)(mask.byte(), 1.0)
    byte_masks.take_bytes(OlderTensor)
    byte_masks.take_bytes(OlderTensor)
    assert getattr(values, name)(mask.byte(), 1.0).tolist() == [1.0, 0.0, 1.0]
    assert getattr(values, name)(mask=mask.bool(), value=2.0).tolist()[0] == 2.0
    with pytest.raises(RuntimeError, match="boolean masks"):
        getattr(values, name)(mask, 1.0)
    for method in byte_masks.MASKED:
        delattr(OlderTensor, method)


def test_this_package_makes_no_bytes(monkeypatch):
    """--user-dir fairseq_ext leaves torch.Tensor as it is."""
    from fairseq.utils import import_user_module

    from fairseq_ext.compat.versions import byte_masks, dataclass_defaults

    monkeypatch.setenv(dataclass_defaults.USER_DIRS_VARIABLE, "")
    changed = []
    monkeypatch.setattr(byte_masks, "take_bytes", changed.append)
    import_user_module(Namespace(user_dir=fairseq_ext.__path__[0]))
    assert not changed


@pytest.mark.parametrize(
    ("line", "expected"),
    [("mask = x.eq(1).byte()", True), ("torch.ByteTensor([1])", True), ("x.eq(1).bool()", False)],
)
def test_sources_with_bytes(tmp_path, line, expected):
    from fairseq_ext.compat.versions.byte_masks import makes_bytes

    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "model.py").write_text(line)
    file = str(tmp_path / "models" / "model.py")
    assert makes_bytes(str(tmp_path)) == makes_bytes(file) == expected
    assert not makes_bytes(str(tmp_path / "gone"))
