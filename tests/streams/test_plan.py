"""The order in which an epoch walks through the pairs."""

import collections

import pytest
import torch
from streams.support import JOINS, in_batches, pairs_of, streams, training_plan

from fairseq_ext.streams.plan import ValidationPlan

# where one pass over a pair makes an epoch; temperature draws each update's pair
DRIVEN = ["joint", "cycle", "main+aux"]


def test_order_is_a_function_of_seed_and_epoch(dataset, schedule):
    first = training_plan(dataset, schedule)
    again = training_plan(dataset, schedule)
    again(7), again(1)
    torch.manual_seed(99)
    assert first(2) == again(2)
    assert first(2) != first(3)
    assert first(2) != training_plan(dataset, schedule, seed=2)(2)


def test_adding_a_pair_leaves_the_order_of_the_others_alone():
    alone = training_plan(streams(x_y=25), "joint")(1)
    beside = training_plan(streams(x_y=25, z_y=11), "joint")(1)
    assert alone == [[index for index in batch if index < 25] for batch in beside]


@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize("schedule", DRIVEN)
def test_driving_pairs_are_seen_exactly_once(dataset, schedule, group):
    """joint, cycle: the largest pairs; main+aux: the main pair. 9 batches divide into groups."""
    seen = collections.Counter(
        index for batch in training_plan(dataset, schedule, group=group)(4) for index in batch
    )
    driving = range(25) if schedule == "main+aux" else range(50)
    assert all(seen[index] == 1 for index in driving)


@pytest.mark.parametrize("schedule", DRIVEN)
def test_an_unfilled_update_goes_on_into_the_next_pass(dataset, schedule):
    """9 batches in updates of 4: three updates, no sentence missed, at most 3 batches again."""
    planned = training_plan(dataset, schedule, group=4)(1)
    assert len(planned) % 4 == 0
    seen = collections.Counter(index for batch in planned for index in batch if index < 25)
    assert set(seen) == set(range(25))
    assert max(seen.values()) <= 2
    assert sum(seen.values()) - 25 <= 3 * 3


def test_small_pairs_are_seen_evenly(dataset):
    """joint: while the largest pair passes once, a smaller one passes again and again."""
    seen = collections.Counter(
        index for batch in training_plan(dataset, "joint")(1) for index in batch if index >= 50
    )
    assert set(seen) == set(range(50, 61))
    assert max(seen.values()) - min(seen.values()) <= 1


def test_temperature_counts_no_sentence_that_is_too_long():
    """The draws are those of a pair that never had the sentences."""
    whole, cut = streams(x_y=25, z_y=25), streams(x_y=25, z_y=5)
    filtered, expected = training_plan(whole, "temperature"), training_plan(cut, "temperature")
    filtered.batches["z-y"] = expected.batches["z-y"]  # as a filter by length leaves them
    assert [filtered.slots(epoch) for epoch in (1, 2)] == [
        expected.slots(epoch) for epoch in (1, 2)
    ]


def test_temperature_counts_sentences_and_not_batches():
    """Long sentences make more batches of --max-tokens; the pairs are of one size."""
    plan = training_plan(streams(x_y=60, z_y=60), "temperature")
    plan.batches["z-y"] = [[sentence] for sentence in range(60)]
    counts = collections.Counter(slot for epoch in range(1, 11) for slot in plan.slots(epoch))
    assert counts["z-y",] / sum(counts.values()) == pytest.approx(0.5, abs=0.07)


def test_temperature_passes_through_a_pair_before_it_repeats(dataset):
    order = collections.defaultdict(list)
    for batch in training_plan(dataset, "temperature", batch_size=1)(1):
        for index in batch:
            order[dataset[index][0]].append(index)
    for pair, indices in order.items():
        size = len(dataset.datasets[pair])
        for start in range(0, len(indices), size):
            part = indices[start : start + size]
            assert len(set(part)) == len(part)


def test_joint_trains_both_directions_on_the_same_sentences(dataset):
    for batch in training_plan(dataset, "joint")(1):
        forward = {index for index in batch if index < 25}
        backward = {index - 25 for index in batch if 25 <= index < 50}
        assert forward == backward and forward


@pytest.mark.parametrize("joins", JOINS, ids=str)
def test_a_pair_joins_after_its_number_of_updates_of_the_run(dataset, schedule, joins):
    """Counted over the epochs, from 1, and right after that it does take part."""
    planned = training_plan(dataset, schedule, group=2, join_at=joins)
    slots = [slot for epoch in range(1, 12) for slot in planned.slots(epoch)]
    assert [planned.begin(epoch) for epoch in (1, 2)] == [0, len(planned.slots(1))]
    assert planned.begin(12) == len(slots)
    for pair in dataset.datasets:
        taken = [number for number, slot in enumerate(slots) if pair in slot]
        join = joins.get(pair, 0)
        assert not taken or taken[0] >= join
        soon = {"joint": 0, "cycle": 2, "main+aux": 15, "temperature": 40}[schedule]
        assert join >= len(slots) or taken[0] <= join + soon


def test_joining_at_0_is_the_plain_plan(dataset, schedule):
    joins = dict.fromkeys(dataset.datasets, 0)
    assert training_plan(dataset, schedule, join_at=joins)(3) == training_plan(dataset, schedule)(3)


@pytest.mark.parametrize("joins", JOINS[:2], ids=str)
def test_the_update_at_which_an_epoch_begins_needs_no_history(dataset, schedule, joins):
    """A plan asked for the 4th epoch alone gives what one that went through them gives."""
    walked = training_plan(dataset, schedule, join_at=joins)
    epochs = [walked(epoch) for epoch in range(1, 5)]
    assert training_plan(dataset, schedule, join_at=joins)(4) == epochs[3]


def test_a_pair_may_not_join_after_the_end_of_the_run(dataset):
    planned = training_plan(dataset, "cycle", join_at={"z-y": 20})
    # 2 pairs of 9 batches: 18 updates, then 18 + 2 ...
    planned.check_joins(max_update=21, max_epoch=2)
    planned.check_joins(max_update=0, max_epoch=0)
    with pytest.raises(ValueError, match="--join-at z-y=20: the run ends after --max-update 20"):
        planned.check_joins(max_update=20, max_epoch=0)
    with pytest.raises(ValueError, match="after --max-epoch 1, which is 18 updates; must be less"):
        planned.check_joins(max_update=0, max_epoch=1)
    assert planned.state.begins == {1: 0}


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_validation_walks_each_pair_once_in_step(dataset, shards):
    validation = ValidationPlan(dataset, in_batches(dataset, 3), shards)
    assert validation(1) == validation(5)
    assert len(validation(1)) % shards == 0
    seen = [index for batch in validation(1) for index in batch]
    assert sorted(seen) == list(range(61))
    for start in range(0, len(validation(1)), shards):
        step = validation(1)[start : start + shards]
        assert len({pairs_of(dataset, batch) for batch in step if batch}) == 1
        assert step[0], "worker 0 always has a batch"


@pytest.mark.parametrize("shards", [1, 2])
def test_the_first_steps_of_a_validation_are_of_all_pairs(dataset, shards):
    """--max-valid-steps counts them; a pair that has no more batches is left out."""
    batches = in_batches(dataset, 3)
    planned = ValidationPlan(dataset, batches, shards)(1)
    steps = [pairs_of(dataset, batch) for batch in planned[::shards]]
    rounds = {pair: -(-len(pair_batches) // shards) for pair, pair_batches in batches.items()}
    assert len(set(rounds.values())) > 1  # the pairs have other lengths
    assert steps == [
        (pair,)
        for number in range(max(rounds.values()))
        for pair, count in rounds.items()
        if number < count
    ]
    for pair, pair_batches in batches.items():  # each in its own order
        in_turn = [batch for batch in planned if batch and pairs_of(dataset, batch) == (pair,)]
        assert in_turn == [dataset.to_global(pair, batch) for batch in pair_batches]


def test_in_order_each_pass_goes_through_the_batches_as_they_are(dataset, schedule):
    """--curriculum: the first epochs, shortest sentences first."""
    planned = training_plan(dataset, schedule, group=2)
    drawn = collections.defaultdict(list)
    for batch in planned(1, shuffle=False):
        for pair in pairs_of(dataset, batch):
            start, end = dataset.starts[pair], dataset.starts[pair] + len(dataset.datasets[pair])
            drawn[pair].append([index - start for index in batch if start <= index < end])
    assert drawn
    for pair, batches in drawn.items():
        whole = planned.batches[pair]
        assert batches == [whole[number % len(whole)] for number in range(len(batches))]
    assert planned(1, shuffle=False) != planned(1)


@pytest.mark.parametrize("schedule", ["main+aux", "temperature"])
def test_drawn_pairs_differ_between_epochs(dataset, schedule):
    planned = training_plan(dataset, schedule, batch_size=1)
    assert planned.slots(1) != planned.slots(2) and planned.slots(1) == planned.slots(1)
