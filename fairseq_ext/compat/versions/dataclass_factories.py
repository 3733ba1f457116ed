"""Options of a fork of fairseq whose defaults are made by factories.

Forks and edited copies write `common: CommonConfig = field(default_factory=CommonConfig)`, because
Python 3.11 refuses `common: CommonConfig = CommonConfig()`. fairseq's `hydra_init` still reads
`field.default`, which such a field has not.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ..patch_registry import PatchedModule, patch


@patch(
    "fairseq.dataclass.configs",
    because="forks of fairseq 0.12 make defaults by factories and register fields without a "
    "default: importing fairseq fails with \"Object of unsupported type: '_MISSING_TYPE'\"",
)
def factories_have_defaults(module: PatchedModule) -> None:
    """Give each field of FairseqConfig with a factory the default that hydra_init reads."""
    for field in dataclasses.fields(module.FairseqConfig):
        factory: Any = field.default_factory
        if field.default is dataclasses.MISSING and factory is not dataclasses.MISSING:
            field.default = factory()
