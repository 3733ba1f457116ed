"""The dataset of datasets, and the order in which an epoch walks through it."""

import collections
import io
import math

import pytest
import torch
from streams.support import in_batches, pairs_of, streams

from fairseq_ext.streams.dataset import StreamsIterator, TrainingPlan, ValidationPlan

SCHEDULES = {
    "joint": {},
    "cycle": {},
    "main+aux": {"main_pair": "x-y"},
    "temperature": {"temperature": 2.0},
}
# where one pass over a pair makes an epoch; temperature draws each update's pair
DRIVEN = ["joint", "cycle", "main+aux"]


def plan(dataset, schedule, *, group=1, seed=1, batch_size=3, **more):
    return TrainingPlan(
        dataset,
        in_batches(dataset, batch_size),
        schedule,
        seed,
        lambda epoch: group,
        **SCHEDULES[schedule],
        **more,
    )


@pytest.fixture
def dataset():
    return streams({"y-x": "x-y"}, x_y=25, y_x=25, z_y=11)


@pytest.fixture(params=SCHEDULES)
def schedule(request):
    return request.param


def test_items_are_those_of_the_pairs(dataset):
    assert len(dataset) == 61
    numbers = collections.Counter(dataset[index][0] for index in range(len(dataset)))
    assert numbers == {"x-y": 25, "y-x": 25, "z-y": 11}
    for pair, start in dataset.starts.items():
        part = dataset.datasets[pair]
        for local in (0, len(part) - 1):
            _, item = dataset[start + local]
            assert torch.equal(item["source"], part[local]["source"])
            assert dataset.size(start + local) == part.size(local)
            assert dataset.num_tokens(start + local) == part.num_tokens(local)


def test_a_batch_is_one_sample_per_pair(dataset):
    batch = dataset.collater([dataset[index] for index in (0, 26, 1, 60)])
    assert list(batch) == ["x-y", "y-x", "z-y"]
    assert [sample["nsentences"] for sample in batch.values()] == [2, 1, 1]
    for pair, sample in batch.items():
        assert sample["net_input"]["pair"] == pair
    assert dataset.collater([]) == {}


def test_order_is_a_function_of_seed_and_epoch(dataset, schedule):
    first = plan(dataset, schedule)
    again = plan(dataset, schedule)
    again(7), again(1)
    torch.manual_seed(99)
    assert first(2) == again(2)
    assert first(2) != first(3)
    assert first(2) != plan(dataset, schedule, seed=2)(2)


def test_adding_a_pair_leaves_the_order_of_the_others_alone():
    alone = plan(streams(x_y=25), "joint")(1)
    beside = plan(streams(x_y=25, z_y=11), "joint")(1)
    assert alone == [[index for index in batch if index < 25] for batch in beside]


@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize("schedule", DRIVEN)
def test_driving_pairs_are_seen_exactly_once(dataset, schedule, group):
    """joint, cycle: the largest pairs; main+aux: the main pair. 9 batches divide into groups."""
    seen = collections.Counter(
        index for batch in plan(dataset, schedule, group=group)(4) for index in batch
    )
    driving = range(25) if schedule == "main+aux" else range(50)
    assert all(seen[index] == 1 for index in driving)


@pytest.mark.parametrize("schedule", DRIVEN)
def test_an_unfilled_update_goes_on_into_the_next_pass(dataset, schedule):
    """9 batches in updates of 4: three updates, no sentence missed, at most 3 batches again."""
    planned = plan(dataset, schedule, group=4)(1)
    assert len(planned) % 4 == 0
    seen = collections.Counter(index for batch in planned for index in batch if index < 25)
    assert set(seen) == set(range(25))
    assert max(seen.values()) <= 2
    assert sum(seen.values()) - 25 <= 3 * 3


def test_small_pairs_are_seen_evenly(dataset):
    """joint: while the largest pair passes once, a smaller one passes again and again."""
    seen = collections.Counter(
        index for batch in plan(dataset, "joint")(1) for index in batch if index >= 50
    )
    assert set(seen) == set(range(50, 61))
    assert max(seen.values()) - min(seen.values()) <= 1


def test_temperature_counts_no_sentence_that_is_too_long():
    """The draws are those of a pair that never had the sentences."""
    whole, cut = streams(x_y=25, z_y=25), streams(x_y=25, z_y=5)
    filtered, expected = plan(whole, "temperature"), plan(cut, "temperature")
    filtered.batches["z-y"] = expected.batches["z-y"]  # as a filter by length leaves them
    assert [filtered.slots(epoch) for epoch in (1, 2)] == [
        expected.slots(epoch) for epoch in (1, 2)
    ]


def test_temperature_passes_through_a_pair_before_it_repeats(dataset):
    order = collections.defaultdict(list)
    for batch in plan(dataset, "temperature", batch_size=1)(1):
        for index in batch:
            order[dataset[index][0]].append(index)
    for pair, indices in order.items():
        size = len(dataset.datasets[pair])
        for start in range(0, len(indices), size):
            part = indices[start : start + size]
            assert len(set(part)) == len(part)


def test_joint_trains_both_directions_on_the_same_sentences(dataset):
    for batch in plan(dataset, "joint")(1):
        forward = {index for index in batch if index < 25}
        backward = {index - 25 for index in batch if 25 <= index < 50}
        assert forward == backward and forward


@pytest.mark.parametrize("shards, update_freq", [(1, 1), (2, 1), (1, 2), (2, 3)])
def test_an_update_has_the_same_pairs_on_all_workers(dataset, schedule, shards, update_freq):
    group = shards * update_freq
    made = plan(dataset, schedule, group=group)
    iterators = [
        StreamsIterator(dataset, made, seed=1, num_shards=shards, shard_id=shard, epoch=1)
        for shard in range(shards)
    ]
    per_worker = []
    for iterator in iterators:
        batches = iterator.ordered_batches(1, False, True)
        assert len(batches) == len(iterator) == math.ceil(len(made(1)) / shards)
        per_worker.append([pairs_of(dataset, batch) for batch in batches])
    updates = len(per_worker[0]) / update_freq
    assert updates == int(updates) == len(made.slots(1))
    for number, slot in enumerate(made.slots(1)):
        part = slice(number * update_freq, (number + 1) * update_freq)
        assert {pairs for worker in per_worker for pairs in worker[part]} == {slot}


def test_workers_together_see_what_one_worker_sees(dataset, schedule):
    made = plan(dataset, schedule, group=2)
    shards = [
        StreamsIterator(dataset, made, num_shards=2, shard_id=shard).ordered_batches(1, False, True)
        for shard in range(2)
    ]
    together = [batch for batches in zip(*shards) for batch in batches]
    assert together == made(1)


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
        return StreamsIterator(dataset, plan(dataset, schedule), seed=1)

    whole = indices_seen(make(), taken + 15)
    stopped = make()
    assert indices_seen(stopped, taken) == whole[:taken]
    resumed = make()
    resumed.load_state_dict(stopped.state_dict())
    assert indices_seen(resumed, 15) == whole[taken:]


def test_epochs_differ_and_each_is_planned_anew(dataset, schedule):
    iterator = StreamsIterator(dataset, plan(dataset, schedule), seed=1)
    length = len(iterator)
    seen = indices_seen(iterator, 2 * length)
    first = [ids for epoch, ids in seen if epoch == 1]
    second = [ids for epoch, ids in seen if epoch == 2]
    assert len(first) == length and first != second[:length]


JOINS = [{"z-y": 13}, {"z-y": 13, "y-x": 30}, {"z-y": 1, "y-x": 400}]


@pytest.mark.parametrize("joins", JOINS, ids=str)
def test_a_pair_joins_after_its_number_of_updates_of_the_run(dataset, schedule, joins):
    """Counted over the epochs, from 1, and right after that it does take part."""
    made = plan(dataset, schedule, group=2, join_at=joins)
    slots = [slot for epoch in range(1, 12) for slot in made.slots(epoch)]
    assert [made.begin(epoch) for epoch in (1, 2)] == [0, len(made.slots(1))]
    assert made.begin(12) == len(slots)
    for pair in dataset.datasets:
        taken = [number for number, slot in enumerate(slots) if pair in slot]
        join = joins.get(pair, 0)
        assert not taken or taken[0] >= join
        soon = {"joint": 0, "cycle": 2, "main+aux": 15, "temperature": 40}[schedule]
        assert join >= len(slots) or taken[0] <= join + soon


def test_joining_at_0_is_the_plain_plan(dataset, schedule):
    joins = dict.fromkeys(dataset.datasets, 0)
    assert plan(dataset, schedule, join_at=joins)(3) == plan(dataset, schedule)(3)


@pytest.mark.parametrize("joins", JOINS[:2], ids=str)
def test_the_update_at_which_an_epoch_begins_needs_no_history(dataset, schedule, joins):
    """A plan asked for the 4th epoch alone gives what one that went through them gives."""
    walked = plan(dataset, schedule, join_at=joins)
    epochs = [walked(epoch) for epoch in range(1, 5)]
    assert plan(dataset, schedule, join_at=joins)(4) == epochs[3]


@pytest.mark.parametrize("taken", [2, 12, 14, 25, 31])
def test_resume_before_and_after_a_pair_joins(dataset, schedule, taken):
    def make():
        return StreamsIterator(dataset, plan(dataset, schedule, join_at=JOINS[1]), seed=1)

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
    first = StreamsIterator(dataset, plan(dataset, "cycle", join_at={"z-y": 50}), seed=1)
    indices_seen(first, len(first))  # 18 updates: two pairs
    resumed = plan(dataset, "cycle", group=3, join_at={"z-y": 50})
    StreamsIterator(dataset, resumed, seed=1).load_state_dict(first.state_dict())
    assert resumed.begin(2) == 18 != plan(dataset, "cycle", group=3).begin(2)


def test_a_pair_may_not_join_after_the_end_of_the_run(dataset):
    made = plan(dataset, "cycle", join_at={"z-y": 20})
    # 2 pairs of 9 batches: 18 updates, then 18 + 2 ...
    made.check_joins(max_update=21, max_epoch=2)
    made.check_joins(max_update=0, max_epoch=0)
    with pytest.raises(ValueError, match="--join-at z-y=20: the run ends after --max-update 20"):
        made.check_joins(max_update=20, max_epoch=0)
    with pytest.raises(ValueError, match="after --max-epoch 1, which is 18 updates; must be less"):
        made.check_joins(max_update=0, max_epoch=1)
    assert made.state.begins == {1: 0}


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_validation_walks_each_pair_once_in_step(dataset, shards):
    made = ValidationPlan(dataset, in_batches(dataset, 3), shards)
    assert made(1) == made(5)
    assert len(made(1)) % shards == 0
    seen = [index for batch in made(1) for index in batch]
    assert seen == list(range(61))
    for start in range(0, len(made(1)), shards):
        step = made(1)[start : start + shards]
        assert len({pairs_of(dataset, batch) for batch in step if batch}) == 1
        assert step[0], "worker 0 always has a batch"


def test_in_order_each_pass_goes_through_the_batches_as_they_are(dataset, schedule):
    """--curriculum: the first epochs, shortest sentences first."""
    made = plan(dataset, schedule, group=2)
    drawn = collections.defaultdict(list)
    for batch in made(1, shuffle=False):
        for pair in pairs_of(dataset, batch):
            start, end = dataset.starts[pair], dataset.starts[pair] + len(dataset.datasets[pair])
            drawn[pair].append([index - start for index in batch if start <= index < end])
    assert drawn
    for pair, batches in drawn.items():
        whole = made.batches[pair]
        assert batches == [whole[number % len(whole)] for number in range(len(batches))]
    assert made(1, shuffle=False) != made(1)


def test_curriculum_orders_the_first_epochs_and_survives_a_resumption(dataset, schedule):
    def walk(iterator, shuffle, count):
        batches = iterator.next_epoch_itr(shuffle=shuffle)
        return [next(batches)[pair]["id"].tolist() for _ in range(count) for pair in ("x-y",)]

    made = plan(dataset, "joint")
    iterator = StreamsIterator(dataset, made, seed=1)
    first = walk(iterator, False, 4)
    assert sorted(sum(first, [])) == list(range(12))
    stored = iterator.state_dict()
    resumed = StreamsIterator(dataset, plan(dataset, "joint"), seed=1)
    resumed.load_state_dict(stored)
    rest = [batch["x-y"]["id"].tolist() for batch in resumed.next_epoch_itr(shuffle=False)]
    assert sorted(sum(first + rest, [])) == list(range(25)) and sorted(rest[0]) == [12, 13, 14]
    shuffled = walk(resumed, True, 9)
    assert sorted(sum(shuffled, [])) == list(range(25))
    assert sorted(map(min, shuffled)) != list(map(min, shuffled))


def test_a_checkpoint_from_before_curriculum_goes_on_with_its_order(dataset):
    """It says "shuffle": False of an epoch that was in the plan's random order."""
    iterator = StreamsIterator(dataset, plan(dataset, "cycle"), seed=1)
    whole = indices_seen(StreamsIterator(dataset, plan(dataset, "cycle"), seed=1), 10)
    assert indices_seen(iterator, 4) == whole[:4]
    state = iterator.state_dict()
    state["shuffle"] = False
    del state["streams"]["in_order"]
    resumed = StreamsIterator(dataset, plan(dataset, "cycle"), seed=1)
    resumed.load_state_dict(state)
    assert indices_seen(resumed, 6) == whole[4:]


def test_a_position_of_fairseq_alone_is_gone_on_from(dataset):
    """As in a checkpoint of one pair that was trained by another task."""
    iterator = StreamsIterator(dataset, plan(dataset, "cycle"), seed=1)
    position = {"version": 2, "epoch": 2, "iterations_in_epoch": 0, "shuffle": True}
    iterator.load_state_dict(position)
    assert iterator.next_epoch_idx == 2


@pytest.mark.parametrize("schedule", ["main+aux", "temperature"])
def test_drawn_pairs_differ_between_epochs(dataset, schedule):
    made = plan(dataset, schedule, batch_size=1)
    assert made.slots(1) != made.slots(2) and made.slots(1) == made.slots(1)
