"""Models for fairseq 0.9 and 0.10 that load their parameters themselves."""

from argparse import Namespace

import pytest
import torch
from fairseq.models import BaseFairseqModel, register_model
from fairseq.models.fairseq_model import FairseqMultiModel


class Weights(BaseFairseqModel):
    """A model with one parameter."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(2))


def loading(name, base, load):
    """Return a registered model that derives from `base` with this `load_state_dict`."""
    return register_model(name)(type(name, (base,), {"load_state_dict": load}))


def with_args(self, state_dict, strict=True, args=None):
    """Load by place, and keep the options."""
    self.read = args
    return BaseFairseqModel.load_state_dict(self, state_dict, strict, args)


def with_args_by_name(self, state_dict, strict=True, args=None):
    """Load by name."""
    self.read = args
    return BaseFairseqModel.load_state_dict(self, state_dict, strict=strict, args=args)


def without_options(self, state_dict, strict=True):
    """Load without options."""
    self.read = None
    return BaseFairseqModel.load_state_dict(self, state_dict, strict)


@pytest.mark.parametrize("load", [with_args, with_args_by_name, without_options])
def test_models_load_with_the_arguments_of_their_time(load):
    kind = loading(f"loads_{load.__name__}", Weights, load)
    # a class that derives is called by the same names
    derived = register_model(f"derived_{load.__name__}")(type("Derived", (kind,), {}))
    options, ones = Namespace(arch="plugin"), {"weight": torch.ones(2)}
    for model in (kind(), derived()):
        model.load_state_dict(ones, strict=True, model_cfg=options)  # as fairseq does
        assert torch.equal(model.weight, torch.ones(2))
        assert model.read is (None if load is without_options else options)
        with pytest.raises(RuntimeError, match="other"):
            model.load_state_dict({**ones, "other": ones["weight"]}, model_cfg=options)
        model.load_state_dict({}, False)


def test_options_are_read_without_composing_a_configuration():
    """Those of an architecture that fairseq does not know."""
    single, double = Weights(), FairseqMultiModel({}, {})
    single.load_state_dict({"weight": torch.ones(2)}, args=Namespace(arch="unknown"))
    assert torch.equal(single.weight, torch.ones(2))
    double.load_state_dict(double.state_dict(), args=Namespace(arch="unknown"))


def test_models_of_today_are_left_alone():
    def load(self, state_dict, strict=True, model_cfg=None):
        self.read = model_cfg

    kind = loading("loads_as_today", Weights, load)
    assert kind.load_state_dict is load
