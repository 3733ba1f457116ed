"""--stop-min-lr and --stop-time-hours."""

import json
from types import SimpleNamespace

import pytest
import torch
from common import inprocess
from fairseq_cli import train as train_command

from fairseq_ext.compat.training.run_limits import RisingRate

TRI_STAGE = ("--warmup-steps", 4, "--init-lr-scale", 0, "--decay-steps", 9)
INVERSE_SQRT = ("--lr-scheduler", "inverse_sqrt", "--warmup-updates", 4)


@pytest.fixture
def epochs(tiny_training):
    """Function: the number of epochs that a training has."""

    def epochs(*flags):
        words = (*tiny_training, "--max-tokens", 4000, *flags)
        return sum("train_loss" in record for record in inprocess.train(*words))

    return epochs


def test_a_rising_rate_is_a_number():
    rate = RisingRate(0.5)
    assert not rate <= 1 and rate == 0.5 and json.dumps(rate) == "0.5"


@pytest.mark.parametrize(
    "schedule",
    [
        INVERSE_SQRT,
        ("--lr-scheduler", "polynomial_decay", "--warmup-updates", 4, "--total-num-update", 9),
        ("--lr-scheduler", "cosine", "--warmup-updates", 4, "--max-update", 9),
        ("--lr-scheduler", "tri_stage", *TRI_STAGE),
    ],
    ids=lambda schedule: schedule[1],
)
def test_warm_up_from_nothing(schedule, epochs):
    assert epochs(*schedule, "--stop-min-lr", 1e-9, "--max-epoch", 2, "--no-save") == 2


def test_the_rate_is_compared_after_the_warm_up(epochs, tmp_path):
    """1e-3 * sqrt(4 / n) is at most 7.1e-4 after 8 updates; epochs have the same number of them."""
    flags = (*INVERSE_SQRT, "--stop-min-lr", 7.1e-4, "--max-epoch", 20, "--save-dir", tmp_path)
    number = epochs(*flags)
    state = torch.load(tmp_path / f"checkpoint{number}.pt", weights_only=True)
    updates = state["optimizer_history"][-1]["num_updates"]
    assert 8 <= updates < 8 + updates // number
    assert epochs(*flags) == 0  # and when it is resumed


def test_hours_of_the_model_before_do_not_count(epochs, tmp_path):
    epochs("--max-epoch", 1, "--save-dir", tmp_path / "before")
    path = tmp_path / "before" / "checkpoint_last.pt"
    state = torch.load(path, weights_only=True)
    state["extra_state"]["previous_training_time"] = 7200.0
    torch.save(state, path)
    limit = ("--stop-time-hours", 1)
    tuned = ("--finetune-from-model", path, "--save-dir", tmp_path / "tuned")
    assert epochs(*tuned, *limit, "--max-epoch", 3) == 3
    # those of the training itself do
    assert epochs("--save-dir", tmp_path / "before", *limit, "--max-epoch", 4) == 0


def test_the_last_epoch_is_saved(epochs, tmp_path):
    flags = ("--save-interval", 2, "--save-dir", tmp_path)
    assert epochs(*flags, "--max-epoch", 3) == 3
    names = {path.name for path in tmp_path.glob("*.pt")}
    assert names == {f"checkpoint{name}.pt" for name in ("2", "3", "_best", "_last")}
    state = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)
    assert state["extra_state"]["train_iterator"]["epoch"] == 4
    assert epochs(*flags, "--max-epoch", 4) == 1  # the run goes on behind it


def test_the_last_epoch_is_validated_when_it_is_its_turn(epochs, tmp_path):
    flags = ("--save-interval", 2, "--validate-interval", 2, "--save-dir", tmp_path)
    assert epochs(*flags, "--max-epoch", 1) == 1
    state = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)
    assert state["extra_state"]["val_loss"] is None


class Trained:
    """What the training loop reads of a trainer that has read a checkpoint."""

    def __init__(self, updates, hours=0.0):
        self.updates, self._previous_training_time = updates, hours * 3600

    def get_num_updates(self):
        return self.updates


@pytest.mark.parametrize(
    "limits, trained, is_over",
    [
        ((5, 0), Trained(5), True),
        ((5, 0), Trained(4), False),
        ((0, 0), Trained(5), False),
        ((0, 2), Trained(5, 2.5), True),
        ((9, 2), Trained(5, 1.5), False),
    ],
)
def test_a_run_that_is_over_trains_nothing(limits, trained, is_over, monkeypatch):
    """Each start of the same command would make one more update."""
    optimization = SimpleNamespace(max_update=limits[0], stop_time_hours=limits[1])
    cfg = SimpleNamespace(optimization=optimization)
    epochs = SimpleNamespace()  # fairseq's loop begins with its next_epoch_itr
    if is_over:
        assert train_command.train(cfg, trained, None, epochs) == ([None], True)
    else:
        with pytest.raises(AttributeError, match="next_epoch_i"):
            train_command.train(cfg, trained, None, epochs)


@pytest.mark.slow
def test_starting_again_changes_no_checkpoint(tiny_training, tmp_path):
    words = (*tiny_training, "--save-dir", tmp_path, "--disable-validation", "--max-update", 2)
    inprocess.train(*words)
    before = (tmp_path / "checkpoint_last.pt").read_bytes()
    inprocess.train(*words)
    assert (tmp_path / "checkpoint_last.pt").read_bytes() == before
