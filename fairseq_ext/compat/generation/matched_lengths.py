"""--match-source-len, whatever the sentences beside a short one."""

from __future__ import annotations

import functools
from typing import Any

from ..patch_registry import PatchedModule, patch


@patch(
    "fairseq.sequence_generator",
    because="fairseq 0.12.2: a batch whose sources all have fewer words than --min-len, empty ones "
    "for example, ends in an AssertionError with --match-source-len",
)
def source_length_wins_over_min_len(module: PatchedModule) -> None:
    """Let --match-source-len alone decide on lengths, as it does in batches of unequal lengths."""
    build = module.SequenceGenerator.__init__

    @functools.wraps(build)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        build(self, *args, **kwargs)
        if self.match_source_len:
            self.min_len = 0

    module.SequenceGenerator.__init__ = __init__
