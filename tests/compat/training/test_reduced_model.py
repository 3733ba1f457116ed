"""The wrapper that changes how gradients are put together changes nothing else."""

import torch
from fairseq.distributed import LegacyDistributedDataParallel, ModuleProxyWrapper
from torch import nn

from fairseq_ext.compat.training.reduced_model import ReducedModel
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
