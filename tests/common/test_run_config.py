"""What a run writes into its checkpoints, where builders are given a copy of their options."""

import copy
from argparse import Namespace
from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf

from fairseq_ext.common.run_config import carry_in_checkpoints, whole_run


@pytest.fixture
def run():
    return OmegaConf.create({"model": {"width": None, "depth": 2}, "criterion": {"width": 1}})


def test_the_run_of_a_copy_is_that_of_the_original(run):
    assert whole_run(run.model) is run
    # a copy of omegaconf has the same parent
    assert whole_run(copy.copy(run.model)) is run


def test_values_are_in_the_original_and_not_in_the_copy(run):
    part = copy.copy(run.model)
    carry_in_checkpoints(part, "model", {"width": 7})
    assert part.width is None
    assert run == {"model": {"width": 7, "depth": 2}, "criterion": {"width": 1}}


def test_another_group_can_be_named(run):
    carry_in_checkpoints(run.model, "criterion", {"width": None})
    assert run.criterion.width is None and run.model.width is None


@pytest.mark.parametrize("cfg", [SimpleNamespace(width=1), OmegaConf.create({"width": 1})])
def test_without_a_run_nothing_is_written(cfg):
    assert whole_run(cfg) is None
    carry_in_checkpoints(cfg, "model", {"width": 7})
    assert cfg.width == 1


def test_a_namespace_is_what_checkpoints_hold():
    """Models of fairseq without a dataclass have their options in one."""
    args = Namespace(width=1)
    carry_in_checkpoints(args, "model", {"width": 7, "depth": 2})
    assert vars(args) == {"width": 7, "depth": 2}


def test_an_option_that_the_group_lacks_is_added(run):
    OmegaConf.set_struct(run, True)
    carry_in_checkpoints(run.model, "model", {"height": 3})
    assert run.model.height == 3 and OmegaConf.is_struct(run)
