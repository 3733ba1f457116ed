"""A name in --model-overrides that is no option is refused."""

import argparse

import pytest
import torch
from fairseq import checkpoint_utils

from fairseq_ext.compat.checkpoints.model_overrides import check_override_names, override_names


@pytest.fixture
def overrides():
    """A function: the names in --model-overrides are looked up in a configuration."""

    def check(cfg, *names):
        token = override_names.set(names)
        try:
            check_override_names("x.pt", cfg)
        finally:
            override_names.reset(token)

    return check


def test_override_that_is_younger_than_the_checkpoint(overrides):
    """An option that the class declares today may be set where the checkpoint has none."""
    model = argparse.Namespace(arch="lstm", dropout=0.1)
    cfg = {"task": {"_name": "translation"}, "model": model}
    overrides(cfg, "dropout", "encoder_bidirectional")
    with pytest.raises(ValueError, match="'droput' is no option .*did you mean dropout"):
        overrides(cfg, "droput")


def test_overrides_of_other_projects_are_theirs(overrides, monkeypatch):
    from fairseq.models import ARCH_MODEL_REGISTRY

    class Other:
        pass

    monkeypatch.setitem(ARCH_MODEL_REGISTRY, "other_arch", Other)
    overrides({"model": argparse.Namespace(arch="other_arch")}, "own_option")


def test_a_checkpoint_is_read_once(tmp_path, monkeypatch, overrides):
    """Names in --model-overrides are looked up without a second reading."""
    path = str(tmp_path / "x.pt")
    cfg = {"task": {"_name": "translation"}, "model": {"_name": "lstm", "dropout": 0.1}}
    history = [{"criterion_name": "x", "num_updates": 1}]
    state = {"cfg": cfg, "model": {}, "optimizer_history": history, "extra_state": {}}
    torch.save({**state, "args": None}, path)
    reads, load = [], torch.load
    monkeypatch.setattr(
        torch, "load", lambda *args, **named: reads.append(1) or load(*args, **named)
    )
    token = override_names.set(("droput",))
    try:
        with pytest.raises(
            ValueError, match="'droput' is no option in the configuration of .*x.pt"
        ):
            checkpoint_utils.load_checkpoint_to_cpu(path, {"droput": 0.2})
    finally:
        override_names.reset(token)
    assert len(reads) == 1
