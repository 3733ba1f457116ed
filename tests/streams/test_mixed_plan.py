"""Synthetic updates between those of the schedule."""

import collections

import pytest
from streams.support import in_batches, pairs_of, streams

from fairseq_ext.streams.dataset import StreamsDataset
from fairseq_ext.streams.iterator import StreamsIterator
from fairseq_ext.streams.mixed_plan import MixedPlan
from fairseq_ext.streams.plan import TrainingPlan
from fairseq_ext.streams.state import RunState
from fairseq_ext.streams.synthetic_share import parse_share

REAL = ["a-b", "b-a", "c-b"]
LINES = ["a-b@mono", "b-a@mono"]
SCHEDULES = ("joint", "cycle", "main+aux", "temperature")


@pytest.fixture
def dataset():
    parts = streams(a_b=40, b_a=30, c_b=10, x=25, y=60).datasets
    return StreamsDataset(dict(zip([*REAL, *LINES], parts.values())))


def plan(dataset, schedule="cycle", share="0.5", waits=False, synthetic=LINES, **more):
    options = dict(schedule=schedule, seed=1, group=lambda epoch: 1, main_pair="a-b")
    batches = in_batches(dataset, 5)
    return MixedPlan(
        synthetic,
        parse_share(share, synthetic),
        waits,
        dataset=dataset,
        batches=batches,
        **options,
        **more,
    )


def plain(dataset, schedule, **more):
    batches = {pair: listed for pair, listed in in_batches(dataset, 5).items() if pair in REAL}
    options = dict(schedule=schedule, seed=1, group=lambda epoch: 1, main_pair="a-b")
    return TrainingPlan(dataset, batches, **options, **more)


def is_synthetic(slot):
    return any(pair in LINES for pair in slot)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("epoch", [1, 2])
def test_real_updates_are_those_of_a_run_without_lines(schedule, epoch, dataset):
    mixed = plan(dataset, schedule)
    slots = mixed.slots(epoch)
    real = [slot for slot in slots if not is_synthetic(slot)]
    assert real == plain(dataset, schedule).slots(epoch)
    assert mixed.begin(3) == len(mixed.slots(1)) + len(mixed.slots(2))
    assert len(mixed(epoch)) == len(slots)
    for batch, slot in zip(mixed(epoch), slots):
        assert pairs_of(dataset, batch) == slot


@pytest.mark.parametrize("share", ["0.5", "0.25", "0.8"])
def test_shares(share, dataset):
    slots = plan(dataset, "joint", share).slots(1)
    assert sum(map(is_synthetic, slots)) == pytest.approx(float(share) * len(slots), abs=1)


def test_what_a_synthetic_update_takes(dataset):
    taken = {
        schedule: [slot for slot in plan(dataset, schedule).slots(1) if is_synthetic(slot)]
        for schedule in SCHEDULES
    }
    assert set(taken["joint"]) == {tuple(LINES)}
    assert taken["cycle"][:4] == [(LINES[0],), (LINES[1],)] * 2
    assert set(taken["main+aux"]) == {("a-b", line) for line in LINES}
    counts = collections.Counter(
        slot for epoch in range(1, 40) for slot in plan(dataset, "temperature").slots(epoch)
    )
    shares = [counts[(line,)] for line in LINES]
    assert shares[0] / sum(shares) == pytest.approx(25 / 85, abs=0.05)


def test_the_cycle_goes_on_over_epochs(dataset):
    """One synthetic update in an epoch: it is not always the first stream's."""
    mixed = plan(dataset, "cycle", "0.05")
    slots = [slot for epoch in range(1, 8) for slot in mixed.slots(epoch) if is_synthetic(slot)]
    assert len(slots) > 4
    assert all(before != following for before, following in zip(slots, slots[1:]))


def test_streams_join_by_the_number_of_updates(dataset):
    mixed = plan(dataset, "joint", join_at={LINES[0]: 4, LINES[1]: 11, "c-b": 5})
    slots = [slot for epoch in (1, 2, 3) for slot in mixed.slots(epoch)]
    assert not any(map(is_synthetic, slots[:4])) and is_synthetic(slots[5])
    for number, slot in enumerate(slots):
        if is_synthetic(slot):
            assert slot == (tuple(LINES) if number >= 11 else (LINES[0],)), number
        else:
            assert ("c-b" in slot) == (number >= 5), number


def test_a_stream_leaves_with_its_direction(dataset):
    state = RunState()
    state.left = {"a-b": 2}
    mixed = plan(dataset, "joint", state=state)
    assert (LINES[1],) in mixed.slots(2) and tuple(LINES) in mixed.slots(1)
    state.left = {"a-b": 2, "b-a": 2}
    assert set(mixed.slots(2)) == {("c-b",)}
    assert not mixed.is_over(2)
    state.left = dict.fromkeys(REAL, 2)
    assert mixed.is_over(2)


@pytest.mark.parametrize("waits", [False, True])
def test_the_share_does_not_begin_anew_where_a_stream_leaves(waits, dataset):
    """It is counted from the first synthetic update, whichever stream that was of."""
    state, staying = RunState(), RunState()
    state.left = {"a-b": 3}
    more = {} if waits else {"join_at": {LINES[1]: 8}}
    slots = []
    for history in (state, staying):
        history.joins_in = {LINES[0]: 1, LINES[1]: 2}
        mixed = plan(dataset, "joint", "0=0,40=0.9", waits=waits, state=history, **more)
        slots.append([mixed.slots(epoch) for epoch in (1, 2, 3)][-1])
    assert {slot for slot in slots[0] if is_synthetic(slot)} == {(LINES[1],)}
    places = [[is_synthetic(slot) for slot in of_epoch] for of_epoch in slots]
    assert places[0] == places[1][: len(places[0])] and sum(places[0]) > 5


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_share_of_its_own_is_not_that_of_other_streams(schedule, dataset):
    """A stream that has not joined, or has left, leaves its updates to the real pairs."""
    state = RunState()
    state.left = {"a-b": 25}
    share = f"{LINES[0]}=0.3,{LINES[1]}=0.4"
    mixed = plan(dataset, schedule, share=share, state=state, join_at={LINES[1]: 160})
    begins = [mixed.begin(epoch) for epoch in (1, 25, 60)]
    slots = [slot for epoch in range(1, 60) for slot in mixed.slots(epoch)]
    for first, last, expected in (
        (0, 160, (0.3, 0)),
        (160, begins[1], (0.3, 0.4)),
        (begins[1], begins[2], (0, 0.4)),
    ):
        part = slots[first:last]
        shares = [sum(line in slot for slot in part) / len(part) for line in LINES]
        assert shares == pytest.approx(expected, abs=0.08), (schedule, first, last)


@pytest.mark.parametrize("share", ["0.5", "a-b@mono=0.2,b-a@mono=0.3"])
def test_the_main_pair_may_have_left(dataset, share):
    state = RunState()
    state.left = {"a-b": 2}
    mixed = plan(dataset, "main+aux", share, state=state)
    assert {slot for slot in mixed.slots(2) if is_synthetic(slot)} == {(LINES[1],)}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_streams_that_wait_join_in_their_epoch(schedule, dataset):
    state = RunState()
    mixed = plan(dataset, schedule, waits=True, state=state)
    assert not any(map(is_synthetic, mixed.slots(1)))
    state.joins_in = {LINES[1]: 2}
    assert not any(map(is_synthetic, mixed.slots(1))), "the present epoch is planned"
    slots = mixed.slots(2)
    used = {pair for slot in slots for pair in slot}
    assert LINES[1] in used and LINES[0] not in used
    assert state.begins_at == {LINES[1]: mixed.begin(2)}
    state.joins_in[LINES[0]] = 3
    assert set(LINES) <= {pair for slot in mixed.slots(3) for pair in slot}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_plan_from_a_checkpoint_is_the_same(schedule, dataset):
    """The state of epoch 3 alone, as a checkpoint holds it."""
    state = RunState()
    mixed = plan(dataset, schedule, "0=0.1,20=0.7", waits=True, state=state)
    mixed.slots(1)
    state.joins_in = {LINES[0]: 2}
    mixed.slots(2)
    state.joins_in[LINES[1]] = 4
    begins = {1: 0, 3: mixed.begin(3)}
    resumed = RunState()
    resumed.load_state_dict({**state.state_dict(), "begins": begins})
    again = plan(dataset, schedule, "0=0.1,20=0.7", waits=True, state=resumed)
    for epoch in (3, 4, 5):
        assert again(epoch) == mixed(epoch)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_streams_with_shares_of_their_own(schedule, dataset):
    text = "a-b@mono=0.6,b-a@mono=0.2"
    share = parse_share(text, LINES)
    mixed = plan(dataset, schedule, text)
    slots = [slot for epoch in range(1, 21) for slot in mixed.slots(epoch)]
    counts = collections.Counter(stream for slot in slots for stream in slot if stream in LINES)
    for stream, part in share.of_streams.items():
        assert counts[stream] == pytest.approx(part * len(slots), rel=0.1)
    for slot in filter(is_synthetic, slots):
        assert len(slot) == (2 if schedule == "main+aux" else 1)
        assert slot[0] == "a-b" if schedule == "main+aux" else slot[0] in LINES
    # real updates are those of a run without lines here, too
    real = [slot for slot in mixed.slots(1) if not is_synthetic(slot)]
    assert real == plain(dataset, schedule).slots(1)


def test_shares_of_streams_know_no_temperature(dataset):
    """--schedule-temperature is of the real pairs; a stream's own share is what it says."""
    text = "a-b@mono=0.6,b-a@mono=0.2"
    drawn = [
        [slot for slot in mixed.slots(1) if is_synthetic(slot)]
        for mixed in (
            plan(dataset, "temperature", text, temperature=temperature) for temperature in (1, 9)
        )
    ]
    assert drawn[0] == drawn[1] and len({*drawn[0]}) == 2


@pytest.mark.parametrize("joins, added", [(20, 60), (90, 60), (0, 60)])
def test_a_stream_takes_part_once_it_is_there_and_has_joined(joins, added, dataset):
    """A run that was begun without the lines has not trained on them before it had them."""
    state = RunState()
    state.added_at = dict.fromkeys(LINES, added)
    growing = "0=0,100=0.8"
    mixed = plan(dataset, share=growing, state=state, join_at=dict.fromkeys(LINES, joins))
    alone = plan(dataset, share=growing, join_at=dict.fromkeys(LINES, max(joins, added)))
    epochs = range(1, 8)
    assert [mixed.slots(n) for n in epochs] == [alone.slots(n) for n in epochs]
    assert any(map(is_synthetic, mixed.slots(7)))


def test_a_share_of_a_stream_that_joins_late(dataset):
    late = plan(dataset, "joint", "a-b@mono=0.3,b-a@mono=0.3", join_at={"b-a@mono": 10**6})
    assert {slot for slot in late.slots(1) if is_synthetic(slot)} == {("a-b@mono",)}


def batches_of(iterator, count):
    """The names and sentence numbers of the next batches."""
    seen = []
    while len(seen) < count:
        for batch in iterator.next_epoch_itr():
            seen.append([(name, part["id"].tolist()) for name, part in batch.items()])
            if len(seen) == count:
                break
    return seen


@pytest.mark.parametrize("taken", [7, "an epoch"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_share_grows_from_the_update_at_which_streams_are_added(schedule, taken, dataset):
    """A run without lines that is resumed with them goes on, as one that begins with them began."""

    def make(share=None):
        planned = plan(dataset, schedule, share) if share else plain(dataset, schedule)
        return StreamsIterator(dataset, planned, seed=1)

    def resumed(iterator, share):
        again = make(share)
        again.load_state_dict(iterator.state_dict())
        return again

    before, growing = make(), "0=0,20=0.8"
    done = len(before.frozen_batches) if taken == "an epoch" else taken
    batches_of(before, done)
    after = batches_of(resumed(before, growing), 39)
    chosen, expected = (
        [is_synthetic(dict(batch)) for batch in run]
        for run in (after, batches_of(make(growing), 39))
    )
    assert chosen == expected and any(chosen[:12])
    real = [batch for batch in after if not is_synthetic(dict(batch))]
    assert real[:4] == batches_of(make(), done + 4)[done:]
    stopped = resumed(before, growing)
    batches_of(stopped, 30)
    assert batches_of(resumed(stopped, growing), 9) == after[30:]
