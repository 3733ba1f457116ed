"""Options of fairseq and of the streams that meet several pairs: they work or are named."""

import collections

import numpy as np
import pytest
from common import inprocess
from fairseq import options, tasks
from streams.folders import random_lines, write_pair

from fairseq_ext.streams.schedule import check_schedule, pair_probabilities


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("options")
    for split in ("train", "valid", "test"):
        for pair in ("xx-yy", "zz-yy"):
            lines = {lang: random_lines(lang, 20) for lang in pair.split("-")}
            write_pair(folder, split, pair, **lines)
    return folder


TASKS = {
    "dual_translation": "dual_transformer_tiny",
    "multiway_translation": "multiway_gru",
    "routed_mtl": "routed_gru",
}


def made(data, *flags, task="multiway_translation", pairs="xx-yy,zz-yy"):
    words = [data, "--task", task, "--arch", TASKS[task], "--lang-pairs", pairs, *flags]
    words += ["--optimizer", "adam", "--batch-size", 4]
    cfg = inprocess.configuration(options.get_training_parser(), words)
    return tasks.setup_task(cfg.task)


@pytest.mark.parametrize(
    "task, schedule",
    [(task, "joint") for task in TASKS]
    + [("multiway_translation", name) for name in ("cycle", "main+aux", "temperature")],
)
def test_an_unknown_main_pair_is_refused_under_every_schedule(task, schedule, data):
    with pytest.raises(ValueError, match="--main-pair 'xx-zz': must be one of xx-yy"):
        made(data, "--schedule", schedule, "--main-pair", "xx-zz", task=task)


@pytest.mark.parametrize("temperature", [0, -1.0, float("inf"), float("nan")])
def test_temperatures_that_mean_nothing_are_refused(temperature):
    with pytest.raises(ValueError, match="--schedule-temperature .*: must be greater than 0"):
        check_schedule("temperature", ["x-y"], None, temperature)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 5.0])
def test_probabilities_are_sizes_to_the_power_of_1_over_the_temperature(temperature):
    sizes = [7, 1, 300]
    weights = np.array(sizes, dtype=float) ** (1 / temperature)
    probabilities = pair_probabilities(sizes, temperature)
    np.testing.assert_allclose(probabilities, weights / weights.sum(), rtol=1e-12)


@pytest.mark.parametrize("temperature", [1e-9, 1e-300])
def test_a_small_temperature_draws_the_largest_pair(temperature):
    assert pair_probabilities([10**9, 10**6, 10**9], temperature).tolist() == [0.5, 0, 0.5]


@pytest.mark.parametrize("option", ["grouped_shuffling", "skip_remainder_batch"])
def test_options_that_change_the_plan_are_refused(option, data):
    """--skip-remainder-batch left out an update an epoch, which --join-at counted all the same."""
    task = made(data)
    task.load_dataset("train", combine=True)
    with pytest.raises(ValueError, match=f"^--{option.replace('_', '-')}: .*; leave it out"):
        task.get_batch_iterator(task.dataset("train"), max_sentences=4, **{option: True})


def test_curriculum_trains_short_sentences_first(data, tmp_path):
    """As fairseq-train gives it to the iterator: the first epoch in order, the second not."""
    sizes = []
    task = made(data, "--schedule", "cycle")
    task.load_dataset("train", combine=True)
    iterator = task.get_batch_iterator(task.dataset("train"), max_sentences=4, seed=1)
    for curriculum in (False, True):
        batches = list(iterator.next_epoch_itr(shuffle=curriculum))
        sizes.append([b["xx-yy"]["net_input"]["src_tokens"].size(1) for b in batches[::2]])
    assert sizes[0] == sorted(sizes[0]) and sizes[1] != sorted(sizes[1])


def test_scores_of_the_training_set_are_of_each_sentence_once(data):
    """fairseq-validate --valid-subset train walks through all, whatever the schedule draws."""
    task = made(data, "--schedule", "temperature")
    task.from_checkpoint = True
    task.load_dataset("train", combine=True)
    iterator = task.get_batch_iterator(task.dataset("train"), max_sentences=3, seed=1)
    seen = collections.Counter(
        (pair, number)
        for batch in iterator.next_epoch_itr(shuffle=False)
        for pair, part in batch.items()
        for number in part["id"].tolist()
    )
    assert set(seen.values()) == {1} and len(seen) == 40


def test_sides_of_different_length_are_named(tmp_path):
    lines = {lang: random_lines(lang, count) for lang, count in (("xx", 12), ("yy", 9))}
    write_pair(tmp_path, "train", "xx-yy", **lines)
    message = r"train.xx-yy.xx.* has 12 sentences and .*train.xx-yy.yy.* has 9"
    for task in TASKS:
        maker = made(tmp_path, "--schedule", "cycle", task=task, pairs="xx-yy")
        with pytest.raises(ValueError, match=message):
            maker.load_dataset("train", combine=True)


@pytest.mark.parametrize("without", [("xx", "zz"), ("xx",), ("zz",)], ids=",".join)
def test_sources_that_nothing_aligns_are_refused(without, tmp_path):
    """Sources in another order cannot be seen where one has no targets."""
    target = random_lines("yy", 6)
    for lang in ("xx", "zz"):
        lines = {lang: random_lines(lang, 6), **({} if lang in without else {"yy": target})}
        write_pair(tmp_path, "test", f"{lang}-yy", **lines)
    words = [tmp_path, "--task", "multiway_translation", "-s", "xx+zz", "-t", "yy"]
    cfg = inprocess.configuration(options.get_generation_parser(), [*words, "--path", "none"])
    task = tasks.setup_task(cfg.task)
    task.pair = "xx+zz-yy"
    with pytest.raises(ValueError, match=f"test of {without[0]}-yy has no sentences of yy"):
        task.load_dataset("test")
