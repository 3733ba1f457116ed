"""A run that goes on in an epoch has the batches of it that it has not had."""

import re

import pytest
from common.checkpoints import compared, differences
from common.resumed_runs import resumed
from fairseq import checkpoint_utils
from fairseq.data import ListDataset
from fairseq.data.iterators import EpochBatchIterator, GroupedIterator

from fairseq_ext import __main__ as command


def test_seeds_of_epochs_are_those_of_a_run_that_was_not_interrupted(train, tmp_path):
    """Losses of the third epoch, whose order of sentences the seed of the epoch decides."""
    flags = ("--max-tokens", 60, "--max-epoch", 3, "--disable-validation", "--log-interval", 1)
    flags += ("--update-ordered-indices-seed",)
    whole = train(tmp_path / "whole", *flags)
    again = train(resumed(tmp_path / "whole", tmp_path / "again", "checkpoint2.pt"), *flags)
    assert again == whole[-len(again) :] and 2 <= len(again) < len(whole)


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


@pytest.mark.parametrize("size, other", [(2, 1), (2, 3), (3, 2), (2, 6)])
def test_other_batch_sizes_go_on_after_as_large_a_part(size, other, caplog):
    """Stock counts batches: with those of half the size, half of what was done comes again."""

    def iterator(batch_size):
        numbers = list(range(24))
        batches = [numbers[start : start + batch_size] for start in range(0, 24, batch_size)]
        return EpochBatchIterator(ListDataset(numbers), list, batches)

    first, again = iterator(size), iterator(other)
    epoch = first.next_epoch_itr()
    seen = [number for _ in range(12 // size) for number in next(epoch)]
    with caplog.at_level("WARNING"):
        again.load_state_dict(first.state_dict())
    rest = [number for batch in again.next_epoch_itr() for number in batch]
    assert len(rest) == 24 - len(seen) == 12
    (record,) = caplog.records
    assert f"began with {24 // size} batches and has {24 // other} now" in record.getMessage()
    # of the same size nothing is said, and every sentence comes once
    caplog.clear()
    again = iterator(size)
    again.load_state_dict(first.state_dict())
    assert sorted(seen + [n for batch in again.next_epoch_itr() for n in batch]) == list(range(24))
    assert not caplog.records


def test_a_run_goes_on_with_other_batches(train, tmp_path):
    """Stock has had 10 batches of the epoch, in which there are 5 now, and ends in an error."""
    flags = ("--disable-validation", "--no-epoch-checkpoints")
    train(tmp_path, *flags, "--batch-size", 16, "--max-update", 10)
    records = train(tmp_path, *flags, "--batch-size", 48, "--max-epoch", 1)
    # after 10 of 15 batches 3 of 5 are done, rounded down
    assert [record["num_updates"] for record in records if "loss" in record] == [11, 12]


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


@pytest.mark.parametrize("shuffle", [True, False])  # False up to --curriculum
@pytest.mark.parametrize("shard", [0, 1])
def test_fixed_batches_stay_with_their_workers(shard, shuffle):
    options = dict(items=Prefetched, num_shards=2, shard_id=shard, reuse_dataloader=True)
    whole, stopped, again = (numbers_of(12, **options) for _ in range(3))
    fixed = {"shuffle": shuffle, "fix_batches_to_gpus": True}
    epochs = [list(whole.next_epoch_itr(**fixed)) for _ in range(2)]
    begun = stopped.next_epoch_itr(**fixed)
    seen = [next(begun) for _ in range(3)]
    again.load_state_dict(stopped.state_dict())
    seen += list(again.next_epoch_itr(**fixed))
    assert seen == epochs[0]
    assert list(again.next_epoch_itr(**fixed)) == epochs[1]
