"""Trainings in 16 bits are resumed to the last bit."""

import shutil

import pytest
import torch
from common import inprocess


def stored(path):
    return torch.load(path, weights_only=True)


def weights(state):
    """The model's matrices and vectors; besides them it has versions, and a buffer of anything."""
    return {name: tensor for name, tensor in state["model"].items() if name.endswith("weight")}


@pytest.fixture
def train(tiny_training):
    """Function (folder, updates, options...) that trains in bfloat16."""

    def train(folder, updates, *flags):
        saving = ("--save-dir", folder, "--save-interval-updates", 3, "--disable-validation")
        words = (*tiny_training, *saving, "--max-update", updates, "--bf16", "--dropout", 0.2)
        inprocess.train(*words, "--optimizer", "adam", "--lr", 0.001, *flags)

    return train


def interrupted(train, folder, *flags):
    """Train for 6 updates; return the folder and another one with the checkpoint of update 3."""
    whole, resumed = folder / "whole", folder / "resumed"
    train(whole, 6, *flags)
    resumed.mkdir()
    shutil.copy(next(whole.glob("checkpoint_*_3.pt")), resumed / "checkpoint_last.pt")
    return whole, resumed


@pytest.mark.parametrize("flags", [(), ("--clip-norm", 0.1), ("--optimizer", "fused_adam")])
def test_a_resumed_training_is_the_uninterrupted_one(flags, train, tmp_path):
    whole, resumed = interrupted(train, tmp_path, *flags)
    train(resumed, 6, *flags)
    ends = [stored(folder / "checkpoint_last.pt") for folder in (whole, resumed)]
    for name, tensor in weights(ends[0]).items():
        assert torch.equal(tensor, weights(ends[1])[name]), name
    exact = [end["last_optimizer_state"]["fp32_params"] for end in ends]
    assert all(map(torch.equal, *exact))
    assert any(not torch.equal(tensor, tensor.bfloat16().float()) for tensor in exact[0])


def test_a_checkpoint_of_plain_fairseq_goes_on_rounded(train, tmp_path):
    whole, resumed = interrupted(train, tmp_path)
    path = resumed / "checkpoint_last.pt"
    state = stored(path)
    del state["last_optimizer_state"]["fp32_params"]
    torch.save(state, path)
    train(resumed, 6)
    ends = (stored(folder / "checkpoint_last.pt") for folder in (whole, resumed))
    exact, rounded = (end["last_optimizer_state"]["fp32_params"] for end in ends)
    # a training from the start would end where the whole one does
    assert 0 < max((tensor - other).abs().max() for tensor, other in zip(exact, rounded)) < 0.01


def test_a_model_that_was_changed_is_taken_as_it_is(train, tmp_path):
    _, resumed = interrupted(train, tmp_path)
    path = resumed / "checkpoint_last.pt"
    state = stored(path)
    for tensor in weights(state).values():
        tensor.zero_()
    torch.save(state, path)
    with inprocess.logged_lines() as lines:
        train(resumed, 4)
    assert any("has other parameters than its optimiser" in line for line in lines)
    # an update of learning rate 0.001, from zero
    assert max(tensor.abs().max() for tensor in weights(stored(path)).values()) < 0.01
