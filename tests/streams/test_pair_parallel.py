"""Which worker trains what with --pair-parallel; the runs are in tests/test_distributed.py."""

import collections
import contextlib
from types import SimpleNamespace

import pytest
import torch
from streams.support import in_batches, pairs_of, streams
from torch import nn

from fairseq_ext.streams import pair_parallel
from fairseq_ext.streams.assignment import PairParallelPlan, assign_pairs
from fairseq_ext.streams.dataset import StreamsIterator, TrainingPlan
from fairseq_ext.streams.pair_parallel import PairParallel, check_pair_parallel, pair_sizes


def uses(pairs, shared=5):
    """An attention that all share, an encoder of size 10 and a decoder of 20 for each language."""
    return {
        pair: {
            "attention": shared,
            f"encoder.{pair.split('-')[0]}": 10,
            f"decoder.{pair.split('-')[1]}": 20,
        }
        for pair in pairs
    }


def assigned(workers, **loads):
    loads = {name.replace("_", "-"): load for name, load in loads.items()}
    return assign_pairs(loads, uses(loads), workers)


def test_pairs_with_the_same_decoder_stay_together():
    """With equal loads 2 + 2: into en on one worker, out of en on the other."""
    found = assigned(2, de_en=9, en_de=9, fr_en=9, en_fr=9)
    assert found == [["de-en", "fr-en"], ["en-de", "en-fr"]]


def test_loads_go_before_sharing():
    """xx-zz is as long as the others together, although all have the same decoder."""
    found = assigned(2, xx_zz=30, yy_zz=10, vv_zz=10, ww_zz=10)
    assert found == [["xx-zz"], ["yy-zz", "vv-zz", "ww-zz"]]


def test_every_pair_has_one_worker_and_every_worker_a_pair():
    langs = "abcdef"
    loads = {f"{s}-{t}": 5 + ord(s) % 3 for s in langs for t in langs if s != t}
    found = assign_pairs(loads, uses(loads), 4)
    assert sorted(pair for pairs in found for pair in pairs) == sorted(loads)
    totals = [sum(loads[pair] for pair in pairs) for pairs in found]
    assert min(totals) > 0 and max(totals) <= 1.15 * sum(totals) / 4
    assert found == assign_pairs(loads, uses(loads), 4)


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
    made = plan(dataset, ASSIGNMENT, update_freq, schedule=schedule)
    for worker, pairs in enumerate(ASSIGNMENT):
        iterator = StreamsIterator(dataset, made, num_shards=2, shard_id=worker)
        batches = iterator.ordered_batches(1, False, False)
        seen = [pairs_of(dataset, batch) for batch in batches]
        assert {pair for found in seen for pair in found} == set(pairs)
        assert len(seen) == len(made.slots(1)) * update_freq
        for number, slot in enumerate(made.slots(1)):
            part = seen[number * update_freq : (number + 1) * update_freq]
            assert set(part) == {slot[worker]}
        assert pairs_of(dataset, iterator.frozen_batches[worker]) == seen[0]
        assert set(iterator.first_batch) <= set(pairs)
    assert made(1) == plan(dataset, ASSIGNMENT, update_freq, schedule=schedule)(1) != made(2)


def test_the_worker_with_the_most_to_do_sets_the_length(dataset):
    made = plan(dataset, ASSIGNMENT)
    assert len(made.slots(1)) == made.begin(2) == 18  # 9 batches of 2 pairs
    seen = collections.Counter(index for batch in made(1) for index in batch)
    assert all(seen[index] == 1 for index in range(50))
    assert all(seen[index] in (4, 5) for index in range(50, 61))  # 18 batches of 4


def test_one_worker_for_all_pairs_is_the_plain_plan(dataset):
    plain = TrainingPlan(dataset, in_batches(dataset, 3), "cycle", 1, lambda epoch: 1)
    assert plan(dataset, [["x-y", "y-x", "z-y"]])(1) == plain(1)


def test_a_worker_whose_pairs_take_no_part_has_empty_batches(dataset):
    made = plan(dataset, ASSIGNMENT, join_at={"z-y": 4})
    assert [slot[1] for slot in made.slots(1)] == [()] * 4 + [("z-y",)] * 14
    made.state.left["z-y"] = 2
    assert made.begin(2) == 18 and {slot[1] for slot in made.slots(2)} == {()}
    iterator = StreamsIterator(dataset, made, num_shards=2, shard_id=1, epoch=2)
    assert iterator.ordered_batches(2, False, False) == [[]] * 18
    assert iterator.first_batch, "the trainer needs some batch where there is none"
    made.state.left.update({"x-y": 3, "y-x": 3})
    assert made.is_over(3) and not made.is_over(2)


def options(**given):
    known = dict(ddp_backend="legacy_ddp", zero_sharding="none")
    flags = ("fp16", "bf16", "amp", "store_ema", "use_bmuf", "no_save_optimizer_state")
    return SimpleNamespace(**{**known, **dict.fromkeys(flags, False), **given})


@pytest.mark.parametrize(
    "given, workers, message",
    [
        ({"schedule": "joint"}, 2, "--schedule joint: must be one of cycle, temperature"),
        ({"schedule": "main+aux"}, 2, "--schedule main.aux: must be one of"),
        ({}, 3, "with 3 workers: there are only 2 pairs \\(a-b, b-a\\)"),
        ({"ddp_backend": "slowmo"}, 2, "--ddp-backend slowmo: must be one of pytorch_ddp"),
        ({"fp16": True}, 2, "--pair-parallel does not go together with --fp16"),
        ({"store_ema": True}, 2, "--store-ema"),
        ({"zero_sharding": "os"}, 2, "--zero-sharding os"),
        ({"no_save_optimizer_state": True}, 2, "--no-save-optimizer-state"),
    ],
)
def test_what_does_not_go_together_is_refused(given, workers, message):
    with pytest.raises(ValueError, match=message):
        check_pair_parallel(
            options(**given), ["a-b", "b-a"], workers, given.get("schedule", "cycle")
        )
    check_pair_parallel(options(), ["a-b", "b-a"], 2, "cycle")


def test_a_model_that_does_not_say_what_a_pair_uses_is_refused():
    with pytest.raises(ValueError, match="--pair-parallel: Linear does not say"):
        pair_sizes(nn.Linear(2, 2), ["a-b"])


def test_the_dual_model_says_what_a_pair_uses(toy_corpus, monkeypatch):
    """Exactly the parameters to which a backward pass of the pair gives a gradient."""
    from common import inprocess
    from fairseq import options as arguments
    from fairseq import tasks
    from streams.conftest import MODEL, TRAINING

    cfg = inprocess.configuration(
        arguments.get_training_parser(),
        [toy_corpus.three, *TRAINING, *MODEL, "--lang-pairs", "xx-yy,yy-zz", "--batch-size", 8],
    )
    task = tasks.setup_task(cfg.task)
    model = task.build_model(cfg.model)
    task.load_dataset("valid")
    for pair, part in task.dataset("valid").datasets.items():
        model.zero_grad(set_to_none=True)
        sample = part.collater([part[0], part[1]])
        model(**sample["net_input"], pair=pair)[0].sum().backward()
        moved = [name for name, parameter in model.named_parameters() if parameter.grad is not None]
        assert model.pair_parameters(pair) == moved


class Reducer:
    """In the place of PairReducer, which needs several processes."""

    def __init__(self, model, optimizer, assignment, sizes):
        self.optimizer = optimizer

    step = contextlib.nullcontext


@pytest.mark.parametrize("is_stand_in", [False, True])
def test_a_stand_in_batch_leaves_no_gradient(is_stand_in, monkeypatch):
    monkeypatch.setattr(pair_parallel, "PairReducer", Reducer)
    workers, model = PairParallel(options()), nn.Linear(1, 1)
    workers.assignment = ASSIGNMENT
    with workers.step(model, "optimizer", is_stand_in):
        model(torch.ones(1)).sum().backward()
    assert (model.weight.grad is None) == is_stand_in
    assert workers.reducer_of("optimizer") and workers.reducer_of("another") is None


def test_the_plain_run_has_no_reducer():
    workers, model = PairParallel(options()), nn.Linear(1, 1)
    with workers.step(model, "optimizer", is_stand_in=True):
        model(torch.ones(1)).sum().backward()
    assert model.weight.grad is not None and workers.reducer_of("optimizer") is None
    workers.send_parameters()
