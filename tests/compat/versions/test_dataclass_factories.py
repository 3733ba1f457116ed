"""A fork that makes defaults by factories: hydra_init registers its options."""

import re
import types
from pathlib import Path

import pytest
from fairseq.dataclass import configs, initialize
from omegaconf import OmegaConf
from omegaconf.errors import ValidationError

from fairseq_ext.compat.versions.dataclass_factories import factories_have_defaults


@pytest.fixture
def fork(monkeypatch):
    """fairseq.dataclass.configs as forks write it; hydra_init reads it."""
    text = Path(configs.__file__).read_text(encoding="utf-8")
    text, count = re.subn(
        r"(?m)^    (\w+): (\w+Config) = \2\(\)$", r"    \1: \2 = field(default_factory=\2)", text
    )
    assert count >= 10
    module = types.ModuleType("forked_configs")
    module.__dict__["__name__"] = "fairseq.dataclass.configs"  # of which dataclasses ask for types
    exec(compile(text, "configs.py", "exec"), module.__dict__)
    monkeypatch.setattr(initialize, "FairseqConfig", module.FairseqConfig)
    return module


def test_the_fork_fails_without_the_patch(fork):
    with pytest.raises(ValidationError, match="_MISSING_TYPE"):
        initialize.hydra_init("forked")


def test_the_options_of_the_fork_are_registered(fork):
    factories_have_defaults(fork)
    initialize.hydra_init("forked")
    defaults = OmegaConf.structured(fork.FairseqConfig)
    assert defaults == OmegaConf.structured(configs.FairseqConfig)
    assert defaults.common.seed == 1 and defaults.checkpoint.save_dir == "checkpoints"


def test_the_release_stays_as_it_is():
    fields = configs.FairseqConfig.__dataclass_fields__
    before = {name: field.default for name, field in fields.items()}
    factories_have_defaults(configs)
    assert {name: field.default for name, field in fields.items()} == before
