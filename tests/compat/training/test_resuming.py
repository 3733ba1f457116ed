"""A resumed training logs and decides as one that was not interrupted."""

import re
import shutil
import sys
from types import SimpleNamespace

import pytest
import torch
from common import inprocess
from common.checkpoints import compared, differences
from fairseq import checkpoint_utils
from fairseq.data import ListDataset
from fairseq.data.iterators import EpochBatchIterator, GroupedIterator

from fairseq_ext import __main__ as command
from fairseq_ext.compat.training import resuming

TIMES = ("wps", "ups", "wall", "update")


@pytest.fixture
def train(tiny_training):
    """Function (save_dir, options...) -> records of the log, without times."""

    def train(folder, *flags):
        records = inprocess.train(*tiny_training, "--save-dir", folder, *flags)
        return [
            {name: value for name, value in record.items() if not name.endswith(TIMES)}
            for record in records
        ]

    return train


def resumed(folder, other, name):
    other.mkdir()
    shutil.copy(folder / name, other / "checkpoint_last.pt")
    return other


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


def test_seeds_of_epochs_are_those_of_a_run_that_was_not_interrupted(train, tmp_path):
    """Losses of the third epoch, whose order of sentences the seed of the epoch decides."""
    flags = ("--max-tokens", 60, "--max-epoch", 3, "--disable-validation", "--log-interval", 1)
    flags += ("--update-ordered-indices-seed",)
    whole = train(tmp_path / "whole", *flags)
    again = train(resumed(tmp_path / "whole", tmp_path / "again", "checkpoint2.pt"), *flags)
    assert again == whole[-len(again) :] and 2 <= len(again) < len(whole)


def test_patience_is_remembered(train, tmp_path):
    """With a learning rate of 0 nothing gets better: the run ends after 1 + 2 validations."""
    flags = ("--patience", 2, "--lr", 0, "--max-epoch", 9, "--max-tokens", 4000)
    whole = train(tmp_path / "whole", *flags)
    folder = resumed(tmp_path / "whole", tmp_path / "again", "checkpoint2.pt")
    again = train(folder, *flags)
    counts = [len([r for r in records if "valid_loss" in r]) for records in (whole, again)]
    assert counts == [3, 1]


def test_an_average_has_no_position_to_go_on_from(train, tmp_path):
    flags = ("--max-tokens", 300, "--disable-validation", "--max-update")
    train(tmp_path / "run", *flags, 2)
    last, mean = tmp_path / "run" / "checkpoint_last.pt", tmp_path / "mean.pt"
    assert command.main(["average", "--inputs", str(last), "--output", str(mean)]) == 0
    message = f"--restore-file {mean}: holds neither a position in the data nor"
    with pytest.raises(ValueError, match=re.escape(message)):
        train(tmp_path / "on", *flags, 3, "--restore-file", mean)
    resets = ("--reset-optimizer", "--reset-dataloader")
    assert train(tmp_path / "new", *flags, 1, "--restore-file", mean, *resets)
    assert train(tmp_path / "tuned", *flags, 1, "--finetune-from-model", mean)


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
    "flags",
    [
        pytest.param((), id="each", marks=pytest.mark.slow),
        pytest.param(("--update-freq", 2), id="grouped"),
    ],
)
def test_one_batch_of_an_epoch_is_skipped(flags, train, tmp_path):
    """Also by an epoch that was interrupted, wherever that was."""
    flags = (*flags, "--skip-remainder-batch", "--max-epoch", 2, "--max-tokens", 150)
    flags += ("--save-interval-updates", 1, "--disable-validation")
    train(tmp_path / "whole", *flags)
    stops = sorted(path.name for path in (tmp_path / "whole").glob("checkpoint_1_*.pt"))
    assert len(stops) >= 2
    for stop in (stops[0], stops[-1]):
        folder = resumed(tmp_path / "whole", tmp_path / stop, stop)
        train(folder, *flags)
        ends = [compared(path / "checkpoint_last.pt") for path in (tmp_path / "whole", folder)]
        assert differences(*ends) == []


@pytest.mark.parametrize(
    "before, after, done", [(2, 1, 3), (1, 2, 6), (2, 3, 3), (3, 2, 5), (4, 1, 1)]
)
def test_other_workers_go_on_where_all_were(before, after, done):
    """No batch of the epoch is left out, and those that come twice are fewer than the workers."""

    def workers(count):
        batches = [[number] for number in range(24)]
        return [
            EpochBatchIterator(
                ListDataset(list(range(24))), list, batches, num_shards=count, shard_id=shard
            )
            for shard in range(count)
        ]

    seen, state = [], None
    for worker in workers(before):
        epoch = worker.next_epoch_itr()
        seen += [next(epoch) for _ in range(done)]
        state = worker.state_dict()
    for worker in workers(after):
        worker.load_state_dict(state)
        seen += list(worker.next_epoch_itr())
    numbers = [number for batch in seen for number in batch]
    assert set(numbers) == set(range(24)) and len(numbers) - 24 < after


def test_positions_without_a_number_of_workers_are_those_of_as_many():
    iterator = EpochBatchIterator(ListDataset([0, 1, 2, 3]), list, [[0], [1], [2], [3]])
    position = {"version": 2, "epoch": 1, "iterations_in_epoch": 3, "shuffle": True}
    iterator.load_state_dict(position)
    assert len(list(iterator.next_epoch_itr())) == 1


def numbers_of(count, items=ListDataset, **options):
    """An iterator over ``count`` batches of one number each."""
    numbers = list(range(count))
    return EpochBatchIterator(items(numbers), list, [[number] for number in numbers], **options)


def after_updates(iterator, group, updates):
    """The batches of so many updates, and the position behind them."""
    grouped = GroupedIterator(iterator.next_epoch_itr(), group)
    seen = [number for _ in range(updates) for batch in next(grouped) for number in batch]
    return seen, iterator.state_dict()


@pytest.mark.parametrize("skips", [False, True])
@pytest.mark.parametrize("count", [5, 8, 11])
def test_another_update_freq_goes_on_in_mid_epoch(count, skips):
    """All that is left is trained, in groups of the new size, and the epoch ends."""
    for before, after in [(1, 2), (1, 3), (1, 4), (2, 3), (3, 2), (3, 4), (4, 3), (2, 2)]:
        for updates in range(1, -(-count // before)):
            seen, position = after_updates(numbers_of(count), before, updates)
            iterator = numbers_of(count)
            iterator.load_state_dict(position)
            rest = iterator.next_epoch_itr()
            groups = list(GroupedIterator(rest, after, skip_remainder_batch=skips))
            seen += [number for group in groups for batch in group for number in batch]
            left_out = (count - before * updates) % after if skips else 0
            assert len(set(seen)) == len(seen) == count - left_out
            assert iterator.end_of_epoch() and iterator.next_epoch_idx == 2


@pytest.mark.slow
def test_training_goes_on_with_another_update_freq(train, tmp_path):
    """One update of one batch, and then those of two: the epoch is over after the rest."""
    flags = ("--max-tokens", 150, "--disable-validation", "--log-interval", 1)
    train(tmp_path, *flags, "--max-update", 1)
    records = train(tmp_path, *flags, "--max-epoch", 1, "--update-freq", 2)
    state = checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "checkpoint_last.pt"))
    assert state["extra_state"]["train_iterator"]["epoch"] == 2
    lines = [record for record in records if "num_updates" in record and "epoch" in record]
    assert {record["epoch"] for record in lines} == {1}


@pytest.mark.parametrize("buffer_size", [0, 3])
def test_epochs_after_the_curriculum_are_shuffled(buffer_size):
    """In one process as in two: fairseq-train gives shuffle=False up to --curriculum."""
    iterator = numbers_of(12, buffer_size=buffer_size, reuse_dataloader=True)  # as tasks do
    first, second = (list(iterator.next_epoch_itr(shuffle=epoch > 1)) for epoch in (1, 2))
    assert first == [[number] for number in range(12)] != second
    again = numbers_of(12, epoch=2)
    assert list(again.next_epoch_itr(shuffle=True)) == second


class Prefetched(ListDataset):
    """Items that are read ahead, which --fix-batches-to-gpus needs."""

    supports_prefetch = True

    def prefetch(self, indices):
        pass


@pytest.mark.parametrize("shard", [0, 1])
def test_fixed_batches_stay_with_their_workers(shard):
    options = dict(items=Prefetched, num_shards=2, shard_id=shard, reuse_dataloader=True)
    whole, stopped, again = (numbers_of(12, **options) for _ in range(3))
    epochs = [list(whole.next_epoch_itr(fix_batches_to_gpus=True)) for _ in range(2)]
    begun = stopped.next_epoch_itr(fix_batches_to_gpus=True)
    seen = [next(begun) for _ in range(3)]
    again.load_state_dict(stopped.state_dict())
    seen += list(again.next_epoch_itr(fix_batches_to_gpus=True))
    assert seen == epochs[0]
    assert list(again.next_epoch_itr(fix_batches_to_gpus=True)) == epochs[1]


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
