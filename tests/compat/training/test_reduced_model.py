"""Wrappers that change when and how gradients are put together change nothing else."""

import contextlib

import torch
from fairseq.distributed import LegacyDistributedDataParallel, ModuleProxyWrapper
from torch import nn

from fairseq_ext.compat.training.reduced_model import ModelWithCriterion, ReducedModel
from fairseq_ext.streams.distributed import unwrapped


def test_all_but_the_reduction_is_passed_on():
    model = nn.Linear(3, 2)
    calls = []
    inside = ModuleProxyWrapper(LegacyDistributedDataParallel(model, process_group=None))
    wrapper = ReducedModel(inside, lambda: calls.append("reduced"))
    x = torch.randn(4, 3)
    assert torch.equal(wrapper(x), model(x)) and wrapper.in_features == 3
    assert list(wrapper.state_dict()) == ["weight", "bias"]
    wrapper.load_state_dict({"weight": torch.ones(2, 3), "bias": torch.zeros(2)})
    assert torch.equal(model.weight, torch.ones(2, 3))
    assert list(wrapper.parameters()) == list(model.parameters()) and unwrapped(wrapper) is model
    with wrapper.no_sync():
        assert inside.module.accumulate_grads
    wrapper.all_reduce_grads()
    assert calls == ["reduced"]


def test_the_exchange_of_both_is_held_back():
    model, criterion = nn.Linear(3, 2), nn.Linear(2, 1)
    legacy = LegacyDistributedDataParallel
    inside, other = (ModuleProxyWrapper(legacy(m, process_group=None)) for m in (model, criterion))
    wrapper = ModelWithCriterion(inside, lambda: other)
    assert unwrapped(wrapper) is model and list(wrapper.state_dict()) == ["weight", "bias"]
    assert list(wrapper.parameters()) == list(model.parameters())
    for expected in (False, True, False):
        with wrapper.no_sync() if expected else contextlib.nullcontext():
            assert [m.module.accumulate_grads for m in (inside, other)] == [expected, expected]
