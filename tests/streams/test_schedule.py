"""Which pairs each update trains on."""

import collections
import math

import numpy as np
import pytest

from fairseq_ext.streams.schedule import (
    check_join_at,
    check_schedule,
    epoch_slots,
    parse_join_at,
)

LENGTHS = {"a-b": 4, "b-a": 4, "c-b": 10}
SIZES = {"a-b": 40, "b-a": 40, "c-b": 160}


def slots(schedule, seed=0, **options):
    random = np.random.RandomState(seed)
    return epoch_slots(schedule, lengths=LENGTHS, sizes=SIZES, random=random, **options)


def test_joint_trains_every_pair_in_every_update():
    assert slots("joint") == [("a-b", "b-a", "c-b")] * 10


def test_cycle_takes_one_pair_after_the_other():
    assert slots("cycle") == [("a-b",), ("b-a",), ("c-b",)] * 10


def test_main_and_aux_takes_the_main_pair_and_one_other():
    drawn = slots("main+aux", main_pair="c-b")
    assert len(drawn) == 10
    assert {main for main, _ in drawn} == {"c-b"}
    assert {other for _, other in drawn} == {"a-b", "b-a"}


@pytest.mark.parametrize("temperature", [1.0, 2.0, 5.0])
def test_temperature_draws_in_proportion_to_the_root_of_the_size(temperature):
    counts = collections.Counter()
    for seed in range(400):
        drawn = slots("temperature", seed, temperature=temperature)
        assert len(drawn) == 18 and all(len(slot) == 1 for slot in drawn)
        counts.update(pair for (pair,) in drawn)
    weights = {pair: size ** (1 / temperature) for pair, size in SIZES.items()}
    for pair, weight in weights.items():
        expected = weight / sum(weights.values())
        assert counts[pair] / sum(counts.values()) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("schedule", ["main+aux", "temperature"])
def test_randomness_comes_from_the_argument_alone(schedule):
    options = {"main_pair": "a-b"}
    np.random.seed(1)
    first = slots(schedule, seed=3, **options)
    np.random.seed(2)
    assert slots(schedule, seed=3, **options) == first
    assert any(slots(schedule, seed=seed, **options) != first for seed in range(10))


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("random", ["a-b"], None, 1.0), "--schedule 'random': must be one of joint, cycle"),
        (("main+aux", ["a-b", "b-a"], None, 1.0), "--main-pair None: must be one of a-b, b-a"),
        (("main+aux", ["a-b", "b-a"], "x-y", 1.0), "--main-pair 'x-y': must be one of a-b, b-a"),
        (("main+aux", ["a-b"], "a-b", 1.0), "needs at least one pair besides"),
        (("temperature", ["a-b"], None, 0.0), "--schedule-temperature 0.0: must be greater"),
        (("temperature", ["a-b"], None, float("nan")), "--schedule-temperature nan"),
        (("joint", ["a-b"], None, 5.0), "--schedule-temperature 5 does nothing with --schedule j"),
    ],
)
def test_impossible_schedules_name_the_option(arguments, message):
    with pytest.raises(ValueError) as error:
        check_schedule(*arguments)
    assert message in str(error.value)


@pytest.mark.parametrize("schedule", ["joint", "cycle", "temperature"])
def test_possible_schedules_pass(schedule):
    check_schedule(schedule, ["a-b"], None, 1.0)
    check_schedule("main+aux", ["a-b", "b-a"], "b-a", 1.0)


def test_a_late_pair_takes_part_from_its_slot_on():
    """The epoch is as long as those make it that are there when it begins."""
    late = {"c-b": 3}
    a, b, c = LENGTHS
    assert slots("joint", late=late) == [(a, b)] * 3 + [(a, b, c)]
    assert slots("cycle", late=late) == [(a,), (b,), (a,), (b,), (c,), (a,), (b,), (c,)]
    drawn = slots("main+aux", main_pair=a, late=late)
    assert len(drawn) == 4 and drawn[:3] == [(a, b)] * 3
    drawn = slots("temperature", late={c: 5})
    assert len(drawn) == 8 and (c,) not in drawn[:5] and (c,) in drawn[5:]


def test_the_main_pair_sets_the_length_of_the_epoch():
    """Also where another pair is longer."""
    assert len(slots("main+aux", main_pair="a-b")) == LENGTHS["a-b"]
    assert len(slots("main+aux", main_pair="c-b")) == LENGTHS["c-b"]


@pytest.mark.parametrize("schedule", ["joint", "cycle", "temperature"])
def test_slots_before_anybody_joins_are_empty(schedule):
    """As for a worker of --pair-parallel whose pairs all join late."""
    drawn = slots(schedule, late={"a-b": 2, "b-a": 4, "c-b": 6}, count=8)
    assert len(drawn) == 8 and drawn[:2] == [(), ()]
    assert all(set(slot) == {"a-b"} for slot in drawn[2:4])


def test_a_pair_that_left_takes_no_part():
    a, b, c = LENGTHS
    gone = {c: math.inf}
    assert slots("joint", late=gone) == [(a, b)] * 4
    assert slots("cycle", late=gone) == [(a,), (b,)] * 4
    assert slots("main+aux", main_pair=a, late=gone) == [(a, b)] * 4
    assert slots("main+aux", main_pair=c, late=gone) != slots("main+aux", main_pair=c)
    assert {len(slot) for slot in slots("main+aux", main_pair=c, late=gone)} == {1}
    assert slots("main+aux", main_pair=c, late={a: math.inf, b: math.inf}) == [(c,)] * 10
    assert set(slots("temperature", late=gone)) == {(a,), (b,)}
    for schedule in ("joint", "cycle", "main+aux", "temperature"):
        assert slots(schedule, main_pair=a, late=dict.fromkeys(LENGTHS, math.inf)) == []


def test_join_at():
    pairs = ["a-b", "b-a", "c-b"]
    assert parse_join_at(None, pairs) == parse_join_at("", pairs) == {}
    assert parse_join_at("c-b=5000, b-a=0,", pairs) == {"c-b": 5000, "b-a": 0}


@pytest.mark.parametrize(
    "text, message",
    [
        ("x-y=5", "--join-at 'x-y=5': 'x-y' is none of a-b, b-a"),
        ("a-b", "--join-at 'a-b': '' must be a number of updates, an integer of at least 0"),
        ("a-b=-1", "'-1' must be a number of updates"),
        ("a-b=1.5", "'1.5' must be"),
        ("a-b=1e3", "'1e3' must be"),
        ("a-b=1,a-b=2", "--join-at 'a-b=1,a-b=2': 'a-b' is named twice"),
        ("a-b=1,b-a=2", "one pair must take part from the first update"),
    ],
)
def test_bad_join_at_names_the_option_and_the_value(text, message):
    with pytest.raises(ValueError) as error:
        parse_join_at(text, ["a-b", "b-a"])
    assert "--join-at" in str(error.value) and message in str(error.value)


def test_the_main_pair_may_not_join_late():
    with pytest.raises(ValueError, match="--join-at a-b=7: --main-pair takes part from the first"):
        check_join_at({"a-b": 7}, "main+aux", "a-b")
    check_join_at({"a-b": 0, "b-a": 7}, "main+aux", "a-b")
    check_join_at({"a-b": 7}, "cycle", "a-b")
