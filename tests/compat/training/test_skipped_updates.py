"""What is due after a batch that changed nothing."""

from types import SimpleNamespace

import pytest
from common import inprocess
from fairseq_cli import train as train_command


class Trained:
    """What the training loop reads of a trainer."""

    updates = 0
    _previous_training_time = 0.0

    def get_num_updates(self):
        return self.updates

    def cumulative_training_time(self):
        return 0.0


class Run:
    """A training that validates after 2 updates and saves after 4."""

    def __init__(self):
        self.trainer, self.done = Trained(), []
        self.cfg = SimpleNamespace(
            optimization=SimpleNamespace(max_update=9, max_epoch=0, stop_time_hours=0),
            checkpoint=SimpleNamespace(save_interval=1, save_interval_updates=4),
            dataset=SimpleNamespace(
                validate_interval=1,
                validate_interval_updates=2,
                validate_after_updates=0,
                disable_validation=False,
            ),
        )

    def begin_epoch(self, updates):
        """Begin an epoch, behind so many updates, which has no batches here."""
        self.trainer.updates = updates
        with pytest.raises(AttributeError, match="next_epoch_i"):
            train_command.train(self.cfg, self.trainer, None, SimpleNamespace())

    def step(self, updates, end_of_epoch=False):
        """Return what is done: Validation, what is counted for Patience, Save."""
        self.trainer.updates = updates
        self.done.clear()
        words = (self.cfg, self.trainer, None, SimpleNamespace(epoch=1), ["valid"], end_of_epoch)
        train_command.validate_and_save(*words)
        return "".join(self.done)


@pytest.fixture
def run(monkeypatch):
    run = Run()

    def note(letter, returned=None):
        return lambda *words: run.done.append(letter) or returned

    def should_stop_early(cfg, loss):
        return bool(loss is not None and run.done.append("P"))

    monkeypatch.setattr(train_command, "validate", note("V", [1.0]))
    monkeypatch.setattr(train_command, "should_stop_early", should_stop_early)
    monkeypatch.setattr(train_command.checkpoint_utils, "save_checkpoint", note("S"))
    return run


def test_a_skipped_update_repeats_nothing(run):
    steps = [run.step(updates) for updates in (1, 2, 2, 2, 3, 4, 4)]
    assert steps == ["", "VP", "", "", "", "VPS", ""]


def test_an_epoch_ends_with_a_skipped_update(run):
    assert [run.step(2), run.step(2, end_of_epoch=True)] == ["VP", "VPS"]


def test_a_run_goes_on_with_a_skipped_update(run):
    """The one that wrote its checkpoint has validated."""
    run.begin_epoch(4)
    assert [run.step(4), run.step(5), run.step(6)] == ["", "", "VP"]


@pytest.mark.slow
def test_each_validation_has_its_updates(tiny_training):
    """The loss scale is doubled after two updates, and the next gradient overflows."""
    words = [*tiny_training, "--no-save", "--max-update", 8, "--max-tokens", 40, "--lr", 0.1]
    words += ["--fp16", "--fp16-no-flatten-grads", "--fp16-scale-window", 2]
    words += ["--fp16-init-scale", 2**14, "--validate-interval-updates", 2]
    records = inprocess.train(*words)
    validated = [record["valid_num_updates"] for record in records if "valid_loss" in record]
    assert validated == [2, 4, 6, 8]
