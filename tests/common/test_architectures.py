"""Named architectures: defaults of options, which the user's values replace."""

from argparse import Namespace
from dataclasses import fields

import pytest
from fairseq.models import (
    ARCH_CONFIG_REGISTRY,
    ARCH_MODEL_NAME_REGISTRY,
    ARCH_MODEL_REGISTRY,
    MODEL_DATACLASS_REGISTRY,
)
from omegaconf import OmegaConf

import fairseq_ext  # noqa: F401  (registers the models)
from fairseq_ext.common.architectures import architecture

NAME = "routed_gru_of_a_test"


@pytest.fixture
def registered():
    """An architecture that is gone after the test."""
    architecture("routed_gru", NAME, hidden_size=3, dropout=0.25)
    yield
    for registry in (ARCH_CONFIG_REGISTRY, ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY):
        registry.pop(NAME, None)


def test_values_of_the_user_win(registered):
    args = Namespace(hidden_size=5)
    ARCH_CONFIG_REGISTRY[NAME](args)
    assert vars(args) == {"hidden_size": 5, "dropout": 0.25}
    assert ARCH_MODEL_NAME_REGISTRY[NAME] == "routed_gru"


NAMED = sorted(
    name
    for name, model in ARCH_MODEL_NAME_REGISTRY.items()
    if name != model
    and model in MODEL_DATACLASS_REGISTRY
    and ARCH_MODEL_REGISTRY[name].__module__.startswith("fairseq_ext.")
)


@pytest.mark.parametrize("name", NAMED)
def test_checkpoints_from_before_an_option_have_its_default(name):
    """The configuration of a checkpoint of 0.1.0 lacks the options that are newer."""
    cfg = OmegaConf.create({"_name": name})
    ARCH_CONFIG_REGISTRY[name](cfg)
    declared = MODEL_DATACLASS_REGISTRY[ARCH_MODEL_NAME_REGISTRY[name]]
    assert {field.name for field in fields(declared)} <= set(cfg)


def test_checkpoints_keep_their_options_and_read_those_of_the_task(registered):
    root = {"task": {"max_source_positions": 7}, "model": {"_name": NAME, "dropout": 0.125}}
    cfg = OmegaConf.create(root).model
    ARCH_CONFIG_REGISTRY[NAME](cfg)
    assert (cfg.dropout, cfg.hidden_size, cfg.max_source_positions) == (0.125, 3, 7)
