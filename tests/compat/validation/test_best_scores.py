"""The best score of a training, and --keep-best-checkpoints."""

import re
from types import SimpleNamespace

import pytest
import torch
from common import inprocess
from fairseq import checkpoint_utils, options
from fairseq_cli import train as train_command

from fairseq_ext.compat.user_errors import OptionError
from fairseq_ext.compat.validation import best_scores


@pytest.fixture
def save(tmp_path):
    """Function (scores, options...): save after each score -> the files' names, the best score."""

    def save(scores, metric="loss", maximize=False, number=0):
        best_scores._forget_best()
        cfg = SimpleNamespace(
            save_dir=str(tmp_path), no_save=False, save_interval=1, save_interval_updates=0,
            no_epoch_checkpoints=True, no_last_checkpoints=True, keep_best_checkpoints=number,
            keep_interval_updates=-1, keep_last_epochs=-1, best_checkpoint_metric=metric,
            maximize_best_checkpoint_metric=maximize, write_checkpoints_asynchronously=False,
        )  # fmt: skip
        for epoch, score in enumerate(scores, 1):
            trainer = SimpleNamespace(
                data_parallel_rank=0, should_save_checkpoint_on_current_rank=True,
                consolidate_optimizer=lambda: None, get_num_updates=lambda: 1, checkpoint_suffix="",
                save_checkpoint=lambda path, extra_state, epoch=epoch: torch.save(epoch, path),
            )  # fmt: skip
            position = SimpleNamespace(epoch=epoch, end_of_epoch=lambda: True, state_dict=dict)
            checkpoint_utils.save_checkpoint(cfg, trainer, position, score)
        names = sorted(path.name for path in tmp_path.glob("*.pt"))
        best = getattr(checkpoint_utils.save_checkpoint, "best", None)
        best_scores._forget_best()
        return names, best

    return save


def scores_in(names):
    """The scores in names of files, without the digit that fairseq adds."""
    matches = [re.search(r"_(-?\d+\.\d{3})", name) for name in names]
    return sorted(float(match[1]) for match in matches if match)


@pytest.mark.parametrize("scores", [[3, 4, 5, 6], [6, 5, 4, 3], [4, 6, 3, 5], [3, 6, 5, 4]])
def test_the_best_ones_stay(scores, save):
    """In whatever order they come: the first of fairseq's own are those better than all before."""
    assert scores_in(save(scores, number=3)[0]) == [3, 4, 5]


@pytest.mark.parametrize("scores", [[3, 4, 5, 6], [6, 5, 4, 3], [6, 3, 5, 4]])
def test_the_greatest_ones_stay(scores, save):
    assert scores_in(save(scores, "bleu", True, 2)[0]) == [5, 6]


def test_negative_scores_are_compared(save):
    """Such as log-likelihoods."""
    names, best = save([-4, -2, -3, -5], "log_likelihood", True, 2)
    assert scores_in(names) == [-3, -2] and best == -2


def test_nan_is_no_score(save, tmp_path):
    _, best = save([3.0, float("nan"), 4.0])
    assert best == 3 and torch.load(tmp_path / "checkpoint_best.pt", weights_only=True) == 1


def test_nan_first(save, tmp_path):
    _, best = save([float("nan"), 4.0, 5.0], number=2)
    assert best == 4 and torch.load(tmp_path / "checkpoint_best.pt", weights_only=True) == 2


@pytest.mark.parametrize("maximize", [False, True])
def test_patience_waits_after_nan(maximize):
    """Fairseq's own function compares with the NaN of the first validation for ever."""
    best_scores._forget_best()
    checkpoint = SimpleNamespace(patience=2, maximize_best_checkpoint_metric=maximize)
    cfg, sign = SimpleNamespace(checkpoint=checkpoint), -1 if maximize else 1
    scores = [float("nan"), float("nan"), 5.0, 4.0, float("nan"), 3.0, 6.0, float("nan")]
    stops = [train_command.should_stop_early(cfg, sign * score) for score in scores]
    best_scores._forget_best()
    assert stops == [False] * 7 + [True]


@pytest.mark.parametrize(
    "metric, is_greatest, remedy",
    [
        ("bleu", False, "give --maximize"),
        ("de-en_bleu", False, "give --maximize"),
        ("n_correct", False, "give --maximize"),
        ("log_likelihood", False, "give --maximize"),
        ("loss", True, "leave out --maximize"),
        ("de-en_nll_loss", True, "leave out --maximize"),
        ("bleu", True, None),
        ("loss", False, None),
        ("wpb", True, None),
    ],
)
@pytest.mark.parametrize("is_validated", [True, False])
def test_the_wrong_end_of_a_metric_is_named(metric, is_greatest, remedy, is_validated, caplog):
    """Fairseq's own training says nothing and keeps the worst checkpoint as the best one."""
    module = SimpleNamespace(main=lambda cfg: "trained")
    best_scores.directions_of_metrics_are_named(module)
    checkpoint = SimpleNamespace(
        best_checkpoint_metric=metric, maximize_best_checkpoint_metric=is_greatest
    )
    dataset = SimpleNamespace(disable_validation=not is_validated)
    assert module.main(SimpleNamespace(checkpoint=checkpoint, dataset=dataset)) == "trained"
    assert len(caplog.records) == bool(remedy and is_validated)
    assert not caplog.records or f"{metric}: " in caplog.text and remedy in caplog.text


@pytest.fixture
def run(tiny_training):
    """Function: a training in this process as a command begins it, without clearing anything."""

    def run(*flags):
        words = [*tiny_training, "--cpu", "--num-workers", 0, "--max-tokens", 4000, *flags]
        cfg = inprocess.configuration(options.get_training_parser(), words)
        train_command.main(cfg)

    return run


def test_the_second_training_of_a_process_has_a_best_one(run, tmp_path):
    run("--save-dir", tmp_path / "first", "--max-epoch", 3, "--lr", 0.01)
    run("--save-dir", tmp_path / "second", "--max-epoch", 1, "--lr", 0)
    assert (tmp_path / "second" / "checkpoint_best.pt").exists()


def test_other_metric_begins_anew(run, tmp_path, caplog):
    """A loss is never as great as the number of sentences in a batch."""
    flags = ("--save-dir", tmp_path, "--maximize-best-checkpoint-metric", "--patience", 9)
    run(*flags, "--max-epoch", 1, "--best-checkpoint-metric", "wpb")
    before = checkpoint_utils.save_checkpoint.best
    run(*flags, "--max-epoch", 2, "--best-checkpoint-metric", "loss")
    assert "score is of wpb" in caplog.text
    assert checkpoint_utils.save_checkpoint.best < before
    assert train_command.should_stop_early.best == checkpoint_utils.save_checkpoint.best
    # the same metric goes on
    state = checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "checkpoint_best.pt"))
    assert state["extra_state"]["train_iterator"]["epoch"] == 3
    caplog.clear()
    run(*flags, "--max-epoch", 3, "--best-checkpoint-metric", "loss")
    # and where the best one is to be forgotten there is nothing to say
    run(*flags, "--max-epoch", 4, "--best-checkpoint-metric", "wpb", "--reset-meters")
    assert "score is of" not in caplog.text


def test_unknown_metric_names_those_there_are():
    stats = best_scores.ValidationStats({"loss": 1.0, "ppl": 2.0})
    assert stats["loss"] == 1.0
    with pytest.raises(OptionError, match="--best-checkpoint-metric bleu .* allowed: loss, ppl"):
        stats["bleu"]


def test_metric_of_batches_that_are_left_out():
    """Only the first --valid-subset decides; of others the metric may be missing."""
    message = "bleu is not .* measures in the batches that --max-valid-steps leaves; allowed: loss"
    with pytest.raises(OptionError, match=message):
        best_scores.ValidationStats({"loss": 1.0}, is_cut=True)["bleu"]
    assert best_scores.ValidationStats({"loss": 1.0}, decides=False)["bleu"] is None
