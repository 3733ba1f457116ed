"""What goes together with --pair-parallel; the runs are in tests/test_distributed.py."""

import contextlib
from types import SimpleNamespace

import pytest
import torch
from fairseq.optim.composite import FairseqCompositeOptimizer
from torch import nn

from fairseq_ext.streams import pair_parallel
from fairseq_ext.streams.pair_parallel import PairParallel, check_pair_parallel, pair_sizes


def options(**named):
    defaults = dict(ddp_backend="legacy_ddp", zero_sharding="none")
    flags = ("fp16", "bf16", "amp", "store_ema", "use_bmuf", "no_save_optimizer_state")
    return SimpleNamespace(**{**defaults, **dict.fromkeys(flags, False), **named})


@pytest.mark.parametrize(
    "named, workers, message",
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
def test_what_does_not_go_together_is_refused(named, workers, message):
    with pytest.raises(ValueError, match=message):
        check_pair_parallel(
            options(**named), ["a-b", "b-a"], workers, named.get("schedule", "cycle")
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
    workers.assignment = [["x-y", "y-x"], ["z-y"]]
    with workers.step(model, nn.Module(), "optimizer", is_stand_in):
        model(torch.ones(1)).sum().backward()
    assert (model.weight.grad is None) == is_stand_in
    assert workers.reducer_of("optimizer") and workers.reducer_of("another") is None


def test_the_plain_run_has_no_reducer():
    workers, model = PairParallel(options()), nn.Linear(1, 1)
    with workers.step(model, nn.Module(), "optimizer", is_stand_in=True):
        model(torch.ones(1)).sum().backward()
    assert model.weight.grad is not None and workers.reducer_of("optimizer") is None
    workers.send_parameters()


def test_the_log_says_what_workers_share(caplog):
    sizes = {"a-b": {"attention": 5, "encoder.a": 10}, "b-a": {"attention": 5, "encoder.b": 20}}
    with caplog.at_level("INFO", logger=pair_parallel.__name__):
        pair_parallel.log_assignment([["a-b"], ["b-a"]], {"a-b": 3, "b-a": 4}, sizes)
    assert [line.partition(": ")[2] for line in caplog.messages] == [
        "worker 0 trains a-b (3 batches)",
        "worker 1 trains b-a (4 batches)",
        "workers share 5 of 35 parameters",
    ]


def test_a_criterion_with_parameters_is_refused():
    """Which pair uses them is not known, and workers would add gradients of different ones."""
    parallel = PairParallel(options(pair_parallel=True))
    parallel.assignment = [["a-b"], ["b-a"]]
    with pytest.raises(ValueError, match="--pair-parallel does not .* network of twin"):
        with parallel.step(nn.Linear(2, 2), nn.Linear(2, 2), SimpleNamespace()):
            pass


def test_an_optimizer_of_several_is_refused():
    """Its states lie in several optimisers: the first update ended in an AttributeError."""
    parallel = PairParallel(options(pair_parallel=True))
    parallel.assignment = [["a-b"], ["b-a"]]
    optimizer = object.__new__(FairseqCompositeOptimizer)
    with pytest.raises(ValueError, match="--pair-parallel does not .* --optimizer composite"):
        with parallel.step(nn.Linear(2, 2), nn.Module(), optimizer):
            pass
