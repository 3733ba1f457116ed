"""What three workers exchange, where some parameters belong to one, some to two, some to all."""

import math
from types import SimpleNamespace

import pytest
import torch
from common.gloo_processes import in_processes
from torch import nn

from fairseq_ext.streams.reducer import PairReducer

ASSIGNMENT = [["p"], ["q"], ["r"]]
# the workers that use each parameter; nobody uses "none"
USERS = {"all": (0, 1, 2), "low": (0, 1), "high": (1, 2), "first": (0,), "last": (2,), "none": ()}
# gradients (two elements each) that the workers have; worker 1 does not touch "all", none "high"
GRADIENTS = {"all": {0: 1.0, 2: 5.0}, "low": {0: 2.0, 1: 4.0}, "first": {0: 3.0}, "last": {2: 6.0}}


def worker(rank, folder):
    model = nn.Module()
    for name in USERS:
        setattr(model, name, nn.Parameter(torch.full((2,), float(rank))))
    optimizer = SimpleNamespace(params=list(model.parameters()))
    optimizer.optimizer = torch.optim.Adam(optimizer.params)
    states = optimizer.optimizer.state
    for parameter in optimizer.params:  # as after loading a checkpoint: everything everywhere
        states[parameter] = {"step": 7, "exp_avg": torch.full((2,), 100.0 + rank)}
    uses = {
        pair: [name for name, ranks in USERS.items() if number in ranks]
        for number, (pair,) in enumerate(ASSIGNMENT)
    }
    reducer = PairReducer(model, optimizer, ASSIGNMENT, uses)
    named = dict(model.named_parameters())
    seen = {"held": [name for name, parameter in named.items() if parameter in states]}
    with reducer.step():
        for name, by_rank in GRADIENTS.items():
            if rank in by_rank:
                named[name].grad = torch.full((2,), by_rank[rank])
    reducer.reduce_gradients()
    seen["gradients"] = {n: p.grad[0].item() for n, p in named.items() if p.grad is not None}
    seen["norm"] = reducer.clip_grad_norm(1.0).item()
    seen["clipped"] = {n: p.grad[0].item() for n, p in named.items() if p.grad is not None}
    reducer.complete()
    seen["values"] = {name: parameter[0].item() for name, parameter in named.items()}
    seen["states"] = {n: states[p]["exp_avg"][0].item() for n, p in named.items() if p in states}
    with reducer.step():
        seen["held again"] = [name for name, p in named.items() if p in states]
    with pytest.raises(ZeroDivisionError), reducer.step():
        raise ZeroDivisionError
    if rank == 1:
        reducer.complete()  # after a failure of its own it waits for nobody
    return seen


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    """[what each worker has seen]."""
    return in_processes(3, worker, tmp_path_factory.mktemp("workers"))


def used_by(rank):
    return [name for name, ranks in USERS.items() if rank in ranks]


def test_states_of_what_others_use_are_dropped(workers):
    for rank, of_worker in enumerate(workers):
        assert of_worker["held"] == of_worker["held again"] == [*used_by(rank), "none"]


def test_gradients_are_sums_over_the_users_divided_by_all_workers(workers):
    for rank, of_worker in enumerate(workers):
        expected = {
            name: sum(GRADIENTS[name].values()) / 3 for name in used_by(rank) if name in GRADIENTS
        }
        assert of_worker["gradients"] == pytest.approx(expected)


def test_the_norm_is_that_of_the_whole_gradient(workers):
    means = [sum(by_rank.values()) / 3 for by_rank in GRADIENTS.values()]
    norm = math.sqrt(sum(2 * mean**2 for mean in means))
    for of_worker in workers:
        assert of_worker["norm"] == workers[0]["norm"] == pytest.approx(norm)
        clipped = {name: value / norm for name, value in of_worker["gradients"].items()}
        assert of_worker["clipped"] == pytest.approx(clipped, rel=1e-5)


def test_all_receive_the_values_and_the_first_worker_the_states(workers):
    for rank, of_worker in enumerate(workers):
        expected = {name: float(ranks[0]) for name, ranks in USERS.items() if 0 < len(ranks) < 3}
        expected.update(all=float(rank), none=float(rank))  # those are the same in a run
        assert of_worker["values"] == expected
    states = {name: 100.0 + (ranks[0] if ranks else 0) for name, ranks in USERS.items()}
    assert workers[0]["states"] == states
    assert set(workers[1]["states"]) == {*used_by(1), "none"}
