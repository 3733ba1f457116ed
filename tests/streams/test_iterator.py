"""fairseq's iterator over a plan, and the resumption of a run."""

import io
import math

import pytest
import torch
from streams.support import JOINS, pairs_of, training_plan

from fairseq_ext.streams.iterator import StreamsIterator


@pytest.mark.parametrize("shards, update_freq", [(1, 1), (2, 1), (1, 2), (2, 3)])
def test_an_update_has_the_same_pairs_on_all_workers(dataset, schedule, shards, update_freq):
    group = shards * update_freq
    planned = training_plan(dataset, schedule, group=group)
    iterators = [
        StreamsIterator(dataset, planned, seed=1, num_shards=shards, shard_id=shard, epoch=1)
        for shard in range(shards)
    ]
    per_worker = []
    for iterator in iterators:
        batches = iterator.ordered_batches(1, False, True)
        assert len(batches) == len(iterator) == math.ceil(len(planned(1)) / shards)
        per_worker.append([pairs_of(dataset, batch) for batch in batches])
    updates = len(per_worker[0]) / update_freq
    assert updates == int(updates) == len(planned.slots(1))
    for number, slot in enumerate(planned.slots(1)):
        part = slice(number * update_freq, (number + 1) * update_freq)
        assert {pairs for worker in per_worker for pairs in worker[part]} == {slot}


def test_workers_together_see_what_one_worker_sees(dataset, schedule):
    planned = training_plan(dataset, schedule, group=2)
    shards = [
        StreamsIterator(dataset, planned, num_shards=2, shard_id=shard).ordered_batches(
            1, False, True
        )
        for shard in range(2)
    ]
    together = [batch for batches in zip(*shards) for batch in batches]
    assert together == planned(1)


def indices_seen(iterator, count):
    """Sentence ids per pair of the next ``count`` batches, with the epochs they came from."""
    seen, walk = [], None
    while len(seen) < count:
        if walk is None or not walk.has_next():
            walk = iterator.next_epoch_itr(shuffle=True)
        batch = next(walk)
        ids = {pair: sample["id"].tolist() for pair, sample in batch.items()}
        seen.append((iterator.epoch, ids))
    return seen


@pytest.mark.parametrize("taken", [1, 4, 9, 12])
def test_resume_in_mid_epoch_gives_the_same_batches(dataset, schedule, taken):
    def make():
        return StreamsIterator(dataset, training_plan(dataset, schedule), seed=1)

    whole = indices_seen(make(), taken + 15)
    stopped = make()
    assert indices_seen(stopped, taken) == whole[:taken]
    resumed = make()
    resumed.load_state_dict(stopped.state_dict())
    assert indices_seen(resumed, 15) == whole[taken:]


def test_epochs_differ_and_each_is_planned_anew(dataset, schedule):
    iterator = StreamsIterator(dataset, training_plan(dataset, schedule), seed=1)
    length = len(iterator)
    seen = indices_seen(iterator, 2 * length)
    first = [ids for epoch, ids in seen if epoch == 1]
    second = [ids for epoch, ids in seen if epoch == 2]
    assert len(first) == length and first != second[:length]


@pytest.mark.parametrize("taken", [2, 12, 14, 25, 31])
def test_resume_before_and_after_a_pair_joins(dataset, schedule, taken):
    def make():
        return StreamsIterator(dataset, training_plan(dataset, schedule, join_at=JOINS[1]), seed=1)

    whole = indices_seen(make(), taken + 20)
    stopped = make()
    indices_seen(stopped, taken)
    stored = io.BytesIO()
    torch.save(stopped.state_dict(), stored)
    stored.seek(0)
    resumed = make()
    assert resumed.first_batch  # the trainer asks for it before it restores the position
    resumed.load_state_dict(torch.load(stored, weights_only=True))
    assert indices_seen(resumed, 20) == whole[taken:]


def test_a_resumed_run_counts_on_from_the_updates_it_had(dataset):
    """Also when its epochs have another length by now, as with another number of workers."""
    first = StreamsIterator(dataset, training_plan(dataset, "cycle", join_at={"z-y": 50}), seed=1)
    indices_seen(first, len(first))  # 18 updates: two pairs
    resumed = training_plan(dataset, "cycle", group=3, join_at={"z-y": 50})
    StreamsIterator(dataset, resumed, seed=1).load_state_dict(first.state_dict())
    assert resumed.begin(2) == 18 != training_plan(dataset, "cycle", group=3).begin(2)


@pytest.mark.parametrize("taken", [1, 2, 5, 8])
@pytest.mark.parametrize("before, after", [(1, 2), (2, 3), (3, 1), (8, 1), (1, 40)])
def test_updates_of_another_size_are_those_of_the_plan(dataset, schedule, before, after, taken):
    """--update-freq or the number of workers has changed: no update has batches of two."""
    first = StreamsIterator(dataset, training_plan(dataset, schedule, group=before), seed=1)
    length = len(first) // before
    taken = min(taken, length - 1)
    assert taken
    indices_seen(first, taken * before)
    plan = training_plan(dataset, schedule, group=after)
    resumed = StreamsIterator(dataset, plan, seed=1)
    resumed.load_state_dict(first.state_dict())
    walk = resumed.next_epoch_itr()
    rest = [next(walk)]
    half_way = resumed.state_dict()
    rest += walk
    slots = plan.slots(1)
    updates, odd = divmod(len(rest), after)
    assert odd == 0 and len(slots) - updates == taken * len(slots) // length
    for number, slot in enumerate(slots[len(slots) - updates :]):
        batches = rest[number * after : (number + 1) * after]
        assert {tuple(batch) for batch in batches} == {slot}
    # the run goes on counting from the updates that it has made
    assert resumed.state_dict()["streams"]["begins"][2] == plan.begin(2) == taken + updates
    again = training_plan(dataset, schedule, group=after)
    StreamsIterator(dataset, again, seed=1).load_state_dict(half_way)
    assert again.begin(2) == taken + updates


def test_fewer_minibatches_than_before(dataset, schedule):
    """As with a larger --max-tokens: a position in minibatches would be after their end."""
    plan = training_plan(dataset, schedule)
    first = StreamsIterator(dataset, plan, seed=1)
    indices_seen(first, len(first) - 1)
    fewer = training_plan(dataset, schedule)
    fewer.batches = {
        pair: [sum(batches[start : start + 4], []) for start in range(0, len(batches), 4)]
        for pair, batches in fewer.batches.items()
    }
    resumed = StreamsIterator(dataset, fewer, seed=1)
    assert len(resumed) < len(first) - 1
    resumed.load_state_dict(first.state_dict())
    assert len(list(resumed.next_epoch_itr())) == 1 and fewer.begin(2) == len(first)


def test_one_worker_with_twice_the_batches_goes_on_where_two_were(dataset, schedule):
    plan = training_plan(dataset, schedule, group=2)
    for shard in range(2):
        worker = StreamsIterator(dataset, plan, num_shards=2, shard_id=shard)
        walk = worker.next_epoch_itr()
        for _ in range(3):
            next(walk)
    alone = StreamsIterator(dataset, training_plan(dataset, schedule, group=2))
    whole = [batch.keys() for batch in alone.next_epoch_itr()]
    resumed = StreamsIterator(dataset, training_plan(dataset, schedule, group=2))
    resumed.load_state_dict(worker.state_dict())
    assert [batch.keys() for batch in resumed.next_epoch_itr()] == whole[6:]


def test_curriculum_orders_the_first_epochs_and_survives_a_resumption(dataset, schedule):
    def walk(iterator, shuffle, count):
        batches = iterator.next_epoch_itr(shuffle=shuffle)
        return [next(batches)[pair]["id"].tolist() for _ in range(count) for pair in ("x-y",)]

    planned = training_plan(dataset, "joint")
    iterator = StreamsIterator(dataset, planned, seed=1)
    first = walk(iterator, False, 4)
    assert sorted(sum(first, [])) == list(range(12))
    stored = iterator.state_dict()
    resumed = StreamsIterator(dataset, training_plan(dataset, "joint"), seed=1)
    resumed.load_state_dict(stored)
    rest = [batch["x-y"]["id"].tolist() for batch in resumed.next_epoch_itr(shuffle=False)]
    assert sorted(sum(first + rest, [])) == list(range(25)) and sorted(rest[0]) == [12, 13, 14]
    shuffled = walk(resumed, True, 9)
    assert sorted(sum(shuffled, [])) == list(range(25))
    assert sorted(map(min, shuffled)) != list(map(min, shuffled))


def test_a_checkpoint_from_before_curriculum_goes_on_with_its_order(dataset):
    """It says "shuffle": False of an epoch that was in the plan's random order."""
    iterator = StreamsIterator(dataset, training_plan(dataset, "cycle"), seed=1)
    whole = indices_seen(StreamsIterator(dataset, training_plan(dataset, "cycle"), seed=1), 10)
    assert indices_seen(iterator, 4) == whole[:4]
    state = iterator.state_dict()
    state["shuffle"] = False
    del state["streams"]["in_order"]
    resumed = StreamsIterator(dataset, training_plan(dataset, "cycle"), seed=1)
    resumed.load_state_dict(state)
    assert indices_seen(resumed, 6) == whole[4:]


def test_a_position_of_fairseq_alone_is_gone_on_from(dataset):
    """As in a checkpoint of one pair that was trained by another task."""
    iterator = StreamsIterator(dataset, training_plan(dataset, "cycle"), seed=1)
    position = {"version": 2, "epoch": 2, "iterations_in_epoch": 0, "shuffle": True}
    iterator.load_state_dict(position)
    assert iterator.next_epoch_idx == 2


@pytest.mark.parametrize(
    "named, options",
    [
        (dict(schedule="cycle", seed=2), "--seed"),
        (dict(schedule="temperature"), "--schedule, --schedule-temperature"),
    ],
)
def test_an_epoch_that_goes_on_in_another_order_is_named(dataset, named, options, caplog):
    stopped = StreamsIterator(dataset, training_plan(dataset, "cycle"), seed=1)
    indices_seen(stopped, 4)
    StreamsIterator(dataset, training_plan(dataset, "cycle")).load_state_dict(stopped.state_dict())
    assert not caplog.messages
    resumed = StreamsIterator(dataset, training_plan(dataset, **named), seed=1)
    resumed.load_state_dict(stopped.state_dict())
    assert f"epoch 1 began with another {options}, " in caplog.text
