"""What a run's options make of the order of batches, and what goes on with a checkpoint."""

import copy
from types import SimpleNamespace

import pytest
from streams.monolingual_runs import SYSTEMS, Run, write_data

from fairseq_ext.streams.plan import ValidationPlan
from fairseq_ext.streams.state import RunState
from fairseq_ext.streams.task import StreamsTask


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("loading"))


def iterator_of(run, **options):
    """That of the training set: 30 sentences a pair, four a batch if nothing else is asked for."""
    options = {"max_sentences": 4, "seed": 5, "disable_iterator_cache": True, **options}
    return run.task.get_batch_iterator(run.task.dataset("train"), **options)


@pytest.fixture(scope="module")
def run(data):
    flags = ["--schedule", "temperature", "--schedule-temperature", 3, "--update-freq", "2,3"]
    return Run(data, *SYSTEMS["dual"], *flags, "--join-at", "yy-xx=4")


def test_the_plan_is_that_of_the_options(run):
    plan = iterator_of(run)._plan
    assert (plan.seed, plan.schedule, plan.temperature) == (5, "temperature", 3)
    assert plan.join_at == {"yy-xx": 4} and plan.state is run.task.run_state
    assert plan.batches == iterator_of(run)._plan.batches != iterator_of(run, seed=6)._plan.batches


def test_an_update_has_the_batches_of_all_workers(run):
    """--update-freq 2,3 is 2 in the first epoch and 3 in all that follow."""
    iterator = iterator_of(run, num_shards=2, shard_id=1)
    assert [iterator._plan.group(epoch) for epoch in (1, 2, 3)] == [4, 6, 6]
    assert (iterator.num_shards, iterator.shard_id) == (2, 1)


def test_batches_have_the_sizes_that_are_asked_for(run):
    batches = iterator_of(run, max_sentences=10, required_batch_size_multiple=4)._plan.batches
    *whole, last = [len(batch) for batch in batches["xx-yy"]]
    assert sum(whole) + last == 30 and {8} <= set(whole) <= {4, 8}
    with pytest.raises(Exception, match="Size of sample .* is invalid"):
        iterator_of(run, max_positions=(6, 6))
    batches = iterator_of(run, max_positions=(6, 5), ignore_invalid_inputs=True)._plan.batches
    part = run.task.dataset("train").datasets["yy-xx"]
    fits = {
        index for index in range(30) if part.src_sizes[index] <= 6 and part.tgt_sizes[index] <= 5
    }
    assert {index for batch in batches["yy-xx"] for index in batch} == fits and 0 < len(fits) < 30


def test_an_iterator_is_used_again_where_fairseq_allows_it(run):
    first = iterator_of(run, disable_iterator_cache=False)
    assert iterator_of(run, disable_iterator_cache=False) is first
    assert iterator_of(run) is not first
    again = iterator_of(run, disable_iterator_cache=False, update_epoch_batch_itr=True)
    assert again is not first


def test_a_trained_model_sees_each_sentence_of_the_training_set_once(data):
    run = Run(data, *SYSTEMS["dual"])
    run.task.from_checkpoint = True
    assert isinstance(iterator_of(run)._plan, ValidationPlan)


@pytest.mark.parametrize("flags", [[], ["--synthetic-after-loss", 3]])
def test_streams_wait_for_a_loss_where_one_is_given(flags, data):
    run = Run(data, *SYSTEMS["dual"], "--monolingual", "yy", *flags)
    assert run.iterator._plan.waits == bool(flags)
    assert run.task.loss_threshold.streams == run.task.synthetic == ["xx-yy@mono"]


def test_a_pair_that_joins_too_late_is_refused_where_the_epochs_are_known(data):
    """They are not where several folders take turns."""
    flags = [*SYSTEMS["dual"], "--join-at", "yy-xx=99", "--max-epoch", 1]
    with pytest.raises(ValueError, match="--join-at yy-xx=99: the run ends after --max-epoch 1"):
        Run(data, *flags)
    Run(f"{data}:{data}", *flags)


# ------------------------------------------------------------------ what a run goes on with

# 40 updates before the third epoch, in which 12 are done
POSITION = {
    "epoch": 3,
    "streams": {
        "begins": {1: 0, 3: 40},
        "left": {"a-b": 2},
        "best": {"c-b": 2.5},
        "waited": {"c-b": 1},
        "synthetic": [],
        "position": {"of_run": 52},
    },
}


def gone_on(updates, reset_dataloader, **resets):
    """Task and stored history of a run that goes on, with streams that it did not have before."""
    task = object.__new__(StreamsTask)
    task.run_state, task.synthetic = RunState(), ["a-b@bt"]
    task.pair_patience = SimpleNamespace(uncounted=0)
    position = copy.deepcopy(POSITION)
    options = {"reset_meters": False, "reset_optimizer": False, **resets}
    loading = SimpleNamespace(extra_state={"train_iterator": position}, **options)
    task.go_on_from(loading, updates, reset_dataloader)
    return task, position["streams"]


def test_what_an_iterator_goes_on_with():
    """It reads the stored history itself, but for the scores that are forgotten."""
    task, history = gone_on(52, False)
    assert history == POSITION["streams"] and task.pair_patience.uncounted == 0
    for resets, updates in (({"reset_meters": True}, 52), ({"reset_optimizer": True}, 0)):
        task, history = gone_on(updates, False, **resets)
        assert history == {**POSITION["streams"], "best": {}, "waited": {}}
        assert task.pair_patience.uncounted == 52 - updates
        assert vars(task.run_state) == vars(RunState())


def test_what_data_that_begin_anew_go_on_with():
    task, _ = gone_on(52, True)
    state = task.run_state
    assert state.begins == {1: 52} and state.left == {"a-b": 1}
    assert (state.best, state.waited) == ({"c-b": 2.5}, {"c-b": 1})
    assert state.added_at == {"a-b@bt": 52} and task.pair_patience.uncounted == 0


@pytest.mark.parametrize("resets, updates", [("reset_meters", 52), ("reset_optimizer", 0)])
def test_pairs_that_have_left_come_back_when_scores_are_forgotten(resets, updates):
    """With --reset-optimizer the run's updates count from 0 as well."""
    task, _ = gone_on(updates, True, **{resets: True})
    state = task.run_state
    assert (state.left, state.best, state.waited) == ({}, {}, {})
    assert state.begins == {1: updates} and task.pair_patience.uncounted == 0
    assert state.added_at == ({"a-b@bt": 52} if updates else {})
