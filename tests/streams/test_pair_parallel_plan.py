"""The order of batches where each worker trains pairs of its own."""

import collections

import pytest
from streams.support import in_batches, pairs_of, streams

from fairseq_ext.streams.iterator import StreamsIterator
from fairseq_ext.streams.pair_parallel_plan import PairParallelPlan
from fairseq_ext.streams.plan import TrainingPlan


def plan(dataset, assignment, update_freq=1, seed=1, schedule="cycle", **more):
    workers = len(assignment)
    return PairParallelPlan(
        assignment,
        dataset,
        in_batches(dataset, 3),
        schedule,
        seed,
        lambda epoch: workers * update_freq,
        **more,
    )


@pytest.fixture
def dataset():
    return streams(x_y=25, y_x=25, z_y=11)


ASSIGNMENT = [["x-y", "y-x"], ["z-y"]]


@pytest.mark.parametrize("update_freq", [1, 2])
@pytest.mark.parametrize("schedule", ["cycle", "temperature"])
def test_each_worker_trains_its_own_pairs(dataset, schedule, update_freq):
    planned = plan(dataset, ASSIGNMENT, update_freq, schedule=schedule)
    for worker, pairs in enumerate(ASSIGNMENT):
        iterator = StreamsIterator(dataset, planned, num_shards=2, shard_id=worker)
        batches = iterator.ordered_batches(1, False, False)
        seen = [pairs_of(dataset, batch) for batch in batches]
        assert {pair for drawn in seen for pair in drawn} == set(pairs)
        assert len(seen) == len(planned.slots(1)) * update_freq
        for number, slot in enumerate(planned.slots(1)):
            part = seen[number * update_freq : (number + 1) * update_freq]
            assert set(part) == {slot[worker]}
        assert pairs_of(dataset, iterator.frozen_batches[worker]) == seen[0]
        assert set(iterator.first_batch) <= set(pairs)
    assert planned(1) == plan(dataset, ASSIGNMENT, update_freq, schedule=schedule)(1) != planned(2)


def test_the_worker_with_the_most_to_do_sets_the_length(dataset):
    planned = plan(dataset, ASSIGNMENT)
    assert len(planned.slots(1)) == planned.begin(2) == 18  # 9 batches of 2 pairs
    seen = collections.Counter(index for batch in planned(1) for index in batch)
    assert all(seen[index] == 1 for index in range(50))
    assert all(seen[index] in (4, 5) for index in range(50, 61))  # 18 batches of 4


def test_updates_of_several_batches_are_fewer(dataset):
    """9 batches of each of 2 pairs, 2 in an update: 5 updates of either."""
    assert len(plan(dataset, ASSIGNMENT, update_freq=2).slots(1)) == 10


def test_one_worker_for_all_pairs_is_the_plain_plan(dataset):
    plain = TrainingPlan(dataset, in_batches(dataset, 3), "cycle", 1, lambda epoch: 1)
    assert plan(dataset, [["x-y", "y-x", "z-y"]])(1) == plain(1)


def test_a_worker_whose_pairs_take_no_part_has_empty_batches(dataset):
    planned = plan(dataset, ASSIGNMENT, join_at={"z-y": 4})
    assert [slot[1] for slot in planned.slots(1)] == [()] * 4 + [("z-y",)] * 14
    planned.state.left["z-y"] = 2
    assert planned.begin(2) == 18 and {slot[1] for slot in planned.slots(2)} == {()}
    iterator = StreamsIterator(dataset, planned, num_shards=2, shard_id=1, epoch=2)
    assert iterator.ordered_batches(2, False, False) == [[]] * 18
    assert iterator.first_batch, "the trainer needs some batch where there is none"
    planned.state.left.update({"x-y": 3, "y-x": 3})
    assert planned.is_over(3) and not planned.is_over(2)


@pytest.mark.parametrize("is_parallel_before", [True, False])
def test_an_epoch_that_goes_on_in_another_order_is_named(dataset, is_parallel_before, caplog):
    """Both orders have as many updates: nothing but the warning tells them apart."""
    plans = [plan(dataset, ASSIGNMENT), plan(dataset, ASSIGNMENT)]
    plain = TrainingPlan(dataset, in_batches(dataset, 3), "cycle", 1, lambda epoch: 2)
    plans[not is_parallel_before] = plain
    iterators = [StreamsIterator(dataset, planned, num_shards=2) for planned in (*plans, plans[0])]
    before, after, same = iterators
    next(before.next_epoch_itr())
    same.load_state_dict(before.state_dict())
    assert not caplog.messages
    after.load_state_dict(before.state_dict())
    assert "began with another --pair-parallel" in "".join(caplog.messages)
