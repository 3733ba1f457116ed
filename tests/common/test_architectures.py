"""Named architectures: defaults of options, which the user's values replace."""

from argparse import Namespace

import pytest
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY

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
