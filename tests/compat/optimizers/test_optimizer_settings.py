"""A resumed training says which settings of its optimiser come from the checkpoint."""

import pytest
import torch
from common import inprocess


@pytest.fixture
def train(tiny_training, tmp_path):
    """Function (options...) -> warnings of the optimiser's settings."""

    def train(*flags):
        common = ("--save-dir", tmp_path, "--disable-validation", "--no-epoch-checkpoints")
        with inprocess.logged_lines() as lines:
            inprocess.train(*tiny_training, *common, *flags)
        return [line for line in lines if line.startswith("the optimiser goes on")]

    return train


def stored(folder):
    path = folder / "checkpoint_last.pt"
    state = torch.load(path, weights_only=True)["last_optimizer_state"]
    return state["param_groups"][0]


def test_settings_of_the_checkpoint_are_named(train, tmp_path):
    first = ("--adam-betas", "(0.9, 0.98)", "--weight-decay", 0.1)
    assert train(*first, "--max-update", 1) == []
    assert train(*first, "--max-update", 2) == []
    changed = ("--adam-betas", "(0.9, 0.98)", "--weight-decay", 0.2)
    (line,) = train(*changed, "--max-update", 3)
    assert "weight_decay 0.1 of" in line and "not with 0.2" in line
    assert "--optimizer-overrides \"{'weight_decay': 0.2}\"" in line
    assert stored(tmp_path)["weight_decay"] == 0.1
    overrides = ("--optimizer-overrides", "{'weight_decay': 0.2}")
    assert train(*changed, *overrides, "--max-update", 4) == []
    assert stored(tmp_path)["weight_decay"] == 0.2


def test_settings_of_16_bit_trainings(train):
    """There is an optimiser inside the one that the trainer has."""
    assert train("--bf16", "--weight-decay", 0.1, "--max-update", 1) == []
    (line,) = train("--bf16", "--max-update", 2)
    assert "weight_decay 0.1 of" in line


def test_a_new_optimiser_keeps_nothing(train, tmp_path):
    assert train("--weight-decay", 0.1, "--max-update", 1) == []
    assert train("--weight-decay", 0.2, "--max-update", 2, "--reset-optimizer") == []
    assert stored(tmp_path)["weight_decay"] == 0.2


@pytest.mark.parametrize("name", ["nag", "adafactor"])
def test_no_other_optimiser_warns_of_the_same_settings(name, train):
    for updates in (1, 2):
        assert train("--optimizer", name, "--max-update", updates) == []
