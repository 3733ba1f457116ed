"""Which pairs each update trains on."""

import collections

import numpy as np
import pytest

from fairseq_ext.streams.schedule import check_schedule, epoch_slots, parse_lang_pairs

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


def test_lang_pairs():
    assert parse_lang_pairs("de-en") == ["de-en"]
    assert parse_lang_pairs(" de-en, en-de ,fr-en,") == ["de-en", "en-de", "fr-en"]


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "names no pair"),
        (" , ", "names no pair"),
        ("deen", "'deen' is not of the form SOURCE-TARGET"),
        ("de-", "'de-' is not of the form"),
        ("-en", "'-en' is not of the form"),
        ("de-en-fr", "'de-en-fr' is not of the form"),
        ("de-de", "two different languages"),
        ("de-en,fr-en,de-en", "'de-en' is named twice"),
    ],
)
def test_bad_lang_pairs_name_the_option_and_the_value(text, message):
    with pytest.raises(ValueError) as error:
        parse_lang_pairs(text)
    assert f"--lang-pairs {text!r}" in str(error.value) and message in str(error.value)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("random", ["a-b"], None, 1.0), "--schedule 'random': must be one of joint, cycle"),
        (("main+aux", ["a-b", "b-a"], None, 1.0), "--main-pair None: must be one of a-b, b-a"),
        (("main+aux", ["a-b", "b-a"], "x-y", 1.0), "--main-pair 'x-y': must be one of a-b, b-a"),
        (("main+aux", ["a-b"], "a-b", 1.0), "needs at least one pair besides"),
        (("temperature", ["a-b"], None, 0.0), "--schedule-temperature 0.0: must be greater"),
        (("temperature", ["a-b"], None, float("nan")), "--schedule-temperature nan"),
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
