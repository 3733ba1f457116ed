"""A configuration refers to itself only."""

import argparse

import omegaconf
import pytest
import torch

from fairseq_ext.compat.checkpoints.data_only import RefusedCheckpoint
from fairseq_ext.compat.checkpoints.interpolations import find_resolver, is_plain

GOOD = ["", "5 $", "${optimization.lr}", "${.lr}/x", "${lr[0]}", "$HOME"]
BAD = [
    "${oc.env:HOME}",
    "${env:HOME}",
    "x${now:%Y}",
    "${${a}:b}",
    "$\\{oc.env:HOME}",
    "${a}${b}",
    "${oc.decode:'1'}",
]


@pytest.mark.parametrize("text", GOOD)
def test_plain(text):
    assert is_plain(text)


@pytest.mark.parametrize("text", BAD)
def test_resolvers_are_found_wherever_they_are(text):
    for configuration in (
        {"a": [{"b": text}]},
        argparse.Namespace(a=argparse.Namespace(b=(text,))),
        omegaconf.OmegaConf.create({"a": {"b": text}}) if text.count("{") == 1 else [text],
        {text: 1},
    ):
        assert find_resolver(configuration) == text


@pytest.mark.parametrize("part", ["cfg", "args"])
def test_checkpoint_is_refused(part, tmp_path, monkeypatch):
    from fairseq import checkpoint_utils

    monkeypatch.setenv("SECRET", "value")
    path = tmp_path / "model.pt"
    section = {"model": {"x": "${oc.env:SECRET}"}}
    content = section if part == "cfg" else argparse.Namespace(**section)
    torch.save({"model": {}, "args": None, "cfg": None, part: content}, path)
    with pytest.raises(RefusedCheckpoint, match=r"model.pt: refused, .*oc.env:SECRET"):
        checkpoint_utils.load_checkpoint_to_cpu(str(path))
