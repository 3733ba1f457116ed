"""Minibatches of pairs; directions of the same sentences have the same ones."""

from functools import partial

import numpy as np
import pytest
from common import inprocess
from fairseq import options, tasks
from streams.support import pair_dataset, streams

from fairseq_ext.streams.batching import pair_batches
from fairseq_ext.streams.dataset import StreamsDataset

SIZES = {"max_sentences": 4}


def leave_out_longer(indices, part, limits):
    """A filter of sentences as the task has it: both sides within their limits."""
    within = (part.src_sizes[indices] <= limits[0]) & (part.tgt_sizes[indices] <= limits[1])
    return indices[within]


def batches_of(dataset, limits=None):
    return pair_batches(dataset, 1, SIZES, limits, leave_out_longer)


def test_batches_hold_every_sentence_of_a_pair_once():
    batches = batches_of(streams(x_y=10, z_y=7))
    for pair, size in (("x-y", 10), ("z-y", 7)):
        assert sorted(index for batch in batches[pair] for index in batch) == list(range(size))
        assert all(len(batch) <= 4 for batch in batches[pair])


def test_pairs_of_one_set_have_one_list():
    """In the order of the dataset, whichever pair gives the set its name."""
    batches = batches_of(streams({"x-y": "y-x", "y-x": "y-x"}, x_y=9, z_y=5, y_x=9))
    assert list(batches) == ["x-y", "z-y", "y-x"]
    assert batches["x-y"] is batches["y-x"]


def reference(dataset, seed):
    """Batches of four of a shuffled dataset, sorted by source length, then by target length."""
    order = np.random.RandomState(seed).permutation(len(dataset)).tolist()
    order.sort(key=lambda index: (dataset.src_sizes[index], dataset.tgt_sizes[index]))
    return [order[start : start + 4] for start in range(0, len(order), 4)]


def test_sentences_of_one_length_are_in_the_order_of_the_seed():
    """Whatever was drawn before, and nothing that is drawn later depends on it."""
    dataset = streams(x_y=60, z_y=31)
    for part in dataset.datasets.values():
        part.shuffle = True
    for seed in (1, 2):
        np.random.seed(7)
        batches = pair_batches(dataset, seed, SIZES, None, leave_out_longer)
        assert np.random.rand() == np.random.RandomState(7).rand()
        for pair, part in dataset.datasets.items():
            assert batches[pair] == reference(part, seed)
    assert reference(part, 1) != reference(part, 2)


def test_batches_do_not_depend_on_the_order_of_the_directions():
    """The direction that gives the set its name decides how sentences are sorted."""
    parts = {"x-y": pair_dataset(30, 1), "y-x": pair_dataset(30, 2)}
    for names in (["x-y", "y-x"], ["y-x", "x-y"]):
        dataset = StreamsDataset({name: parts[name] for name in names}, dict.fromkeys(names, "x-y"))
        batches = batches_of(dataset)
        sizes = [parts["x-y"].src_sizes[index] for batch in batches["y-x"] for index in batch]
        assert list(batches) == names and sizes == sorted(sizes)


def test_a_set_has_the_sentences_that_fit_in_both_directions():
    dataset = streams({"x-y": "x-y", "y-x": "x-y"}, x_y=30, y_x=30)
    batches = batches_of(dataset, (4, 5))
    fits = [
        (part.src_sizes <= 4) & (part.tgt_sizes <= 5)
        for part in (dataset.datasets["x-y"], dataset.datasets["y-x"])
    ]
    assert sum(fits[0]) > sum(fits[0] & fits[1]) > 0, "the test must leave out some of each"
    fitting = sorted(index for batch in batches["x-y"] for index in batch)
    assert fitting == np.flatnonzero(fits[0] & fits[1]).tolist()


def test_a_pair_without_sentences_is_named():
    with pytest.raises(ValueError, match="pair x-y: no sentence is left: .* \\(0, 0\\)"):
        batches_of(streams(x_y=5), (0, 0))


@pytest.mark.parametrize("schedule, left", [("joint", (4, 4)), ("cycle", (9, 4))])
def test_limits_of_both_sides(toy_corpus, schedule, left):
    """They differ, unless an update has the same sentences in both directions."""
    words = [toy_corpus.two, "--task", "dual_translation", "-s", "xx", "-t", "yy"]
    words += ["--schedule", schedule, "--arch", "dual_transformer_tiny", "--optimizer", "adam"]
    cfg = inprocess.configuration(options.get_training_parser(), list(map(str, words)))
    task = tasks.setup_task(cfg.task)
    task.load_dataset("train")
    within = partial(task.filter_indices_by_size, ignore_invalid_inputs=True)
    batches = pair_batches(task.dataset("train"), 1, {"max_sentences": 8}, (9, 4), within)
    part = task.dataset("train").datasets["xx-yy"]
    indices = [index for batch in batches["xx-yy"] for index in batch]
    fits = (part.src_sizes <= left[0]) & (part.tgt_sizes <= left[1])
    assert sorted(indices) == np.flatnonzero(fits).tolist()
