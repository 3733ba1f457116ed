"""A resumed training logs and decides as one that was not interrupted."""

import sys
from types import SimpleNamespace

import pytest
import torch
from common.checkpoints import differences
from common.resumed_runs import resumed
from fairseq import checkpoint_utils

from fairseq_ext.compat.training import resuming


@pytest.mark.parametrize("stop", ["checkpoint1.pt", "checkpoint_2_4.pt"])
def test_the_log_goes_on(stop, train, tmp_path):
    """Lines of the log average several updates, before and after the interruption."""
    flags = ("--max-tokens", 300, "--max-epoch", 2, "--log-interval", 3)
    flags += ("--disable-validation", "--save-interval-updates", 4)
    whole = train(tmp_path / "whole", *flags)
    names = sorted(path.name for path in (tmp_path / "whole").glob("*.pt"))
    if stop not in names:  # as many updates in an epoch as the lengths of sentences ask for
        stop = next(name for name in names if name.startswith("checkpoint_2_"))
    again = train(resumed(tmp_path / "whole", tmp_path / "again", stop), *flags)
    assert again == whole[-len(again) :] and 2 <= len(again) < len(whole)


def test_patience_is_remembered(train, tmp_path):
    """With a learning rate of 0 nothing gets better: the run ends after 1 + 2 validations."""
    flags = ("--patience", 2, "--lr", 0, "--max-epoch", 9, "--max-tokens", 4000)
    whole = train(tmp_path / "whole", *flags)
    folder = resumed(tmp_path / "whole", tmp_path / "again", "checkpoint2.pt")
    again = train(folder, *flags)
    counts = [len([r for r in records if "valid_loss" in r]) for records in (whole, again)]
    assert counts == [3, 1]


@pytest.mark.parametrize("reset", ["--reset-optimizer", "--reset-meters"])
def test_patience_begins_anew_with_the_best_score(reset, train, tmp_path):
    """fairseq forgets the best score with either option: there is nothing to wait for."""
    flags = ("--patience", 2, "--lr", 0, "--max-epoch", 9, "--max-tokens", 4000)
    train(tmp_path / "whole", *flags)
    folder = resumed(tmp_path / "whole", tmp_path / "again", "checkpoint2.pt")
    again = train(folder, *flags, reset)
    assert len([record for record in again if "valid_loss" in record]) == 3


def test_another_program_has_no_patience(train, tmp_path, monkeypatch):
    """A loop of one's own on fairseq's Trainer goes on from a checkpoint of fairseq-train."""
    flags = ("--patience", 2, "--max-epoch", 2, "--max-tokens", 4000)
    train(tmp_path / "whole", *flags)
    monkeypatch.delitem(sys.modules, "fairseq_cli.train")
    assert train(resumed(tmp_path / "whole", tmp_path / "again", "checkpoint1.pt"), *flags)


def test_the_learning_rate_hears_of_the_validation_before(train, tmp_path):
    """Every second validation without a better one halves it, also over an interruption."""
    flags = ("--lr-scheduler", "reduce_lr_on_plateau", "--lr-patience", 1, "--lr-shrink", 0.5)
    flags += ("--max-epoch", 6, "--max-tokens", 4000, "--lr", 2, "--lr-threshold", 0.9)
    whole = train(tmp_path / "whole", *flags)
    rates = [record["train_lr"] for record in whole if "train_lr" in record]
    assert len(set(rates)) > 1
    for number in (1, 2, 3, 4):
        folder = resumed(tmp_path / "whole", tmp_path / f"{number}", f"checkpoint{number}.pt")
        again = train(folder, *flags)
        assert [r["train_lr"] for r in again if "train_lr" in r] == rates[number:]
        ends = [
            checkpoint_utils.torch.load(path / "checkpoint_last.pt", weights_only=True)["model"]
            for path in (tmp_path / "whole", folder)
        ]
        name = "decoder.embed_tokens.weight"
        assert torch.equal(ends[0][name], ends[1][name])


def test_averages_are_taken_at_the_same_updates(train, tmp_path):
    """Stopped between two updates that --ema-update-freq averages."""
    flags = ("--store-ema", "--ema-decay", 0.5, "--ema-update-freq", 3, "--max-update", 7)
    flags += ("--save-interval-updates", 4, "--disable-validation", "--max-tokens", 300)
    train(tmp_path / "whole", *flags)
    folder = resumed(tmp_path / "whole", tmp_path / "again", "checkpoint_1_4.pt")
    train(folder, *flags)
    paths = (tmp_path / "whole", folder)
    ends = [
        checkpoint_utils.torch.load(path / "checkpoint_last.pt", weights_only=True)
        for path in paths
    ]
    assert differences(*(end["extra_state"]["ema"] for end in ends)) == []


@pytest.mark.parametrize(
    "updates, resets, warns", [(0, False, True), (7, False, False), (0, True, False)]
)
def test_missing_states_of_the_optimizer_are_named(updates, resets, warns, caplog, monkeypatch):
    """With a state, the number of updates is that of the checkpoint."""
    history = [{"num_updates": 7}]
    trainer = SimpleNamespace(_optim_history=history, get_num_updates=lambda: updates)
    module = SimpleNamespace(Trainer=type("Trainer", (), {"load_checkpoint": lambda *more: {}}))
    resuming.missing_optimizer_states_are_named(module)
    module.Trainer.load_checkpoint(trainer, "checkpoint_last.pt", resets)
    assert ("no state of the optimizer (--no-save-optimizer-state)" in caplog.text) == warns
