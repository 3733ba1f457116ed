"""Options of a fork of fairseq whose defaults are made by factories.

Forks and edited copies write `common: CommonConfig = field(default_factory=CommonConfig)`, because
Python 3.11 refuses `common: CommonConfig = CommonConfig()`. fairseq's `hydra_init` still reads
`field.default`, which such a field has not.
"""

from __future__ import annotations

import dataclasses

from .patch_registry import PatchedModule, patch


@patch(
    "fairseq.dataclass.configs",
    because="forks of fairseq 0.12 make defaults by factories and register fields without a "
    "default: importing fairseq fails with \"Object of unsupported type: '_MISSING_TYPE'\"",
)
def factories_have_defaults(module: PatchedModule) -> None:
    """Give each field of FairseqConfig with a factory the default that hydra_init reads."""
    for field in dataclasses.fields(module.FairseqConfig):
        has_factory = field.default_factory is not dataclasses.MISSING
        if field.default is dataclasses.MISSING and has_factory:
            field.default = field.default_factory()
