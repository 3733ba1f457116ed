"""--sampling-topk with more words than there are."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..user_errors import OptionError

if TYPE_CHECKING:
    from fairseq.data import Dictionary


@patch(
    "fairseq.search",
    because="fairseq 0.12.2: --sampling-topk above the number of words ends in a RuntimeError that "
    "names neither",
)
def samples_are_of_the_words(module: PatchedModule) -> None:
    """Raise OptionError where there are fewer words to draw from."""
    build = module.Sampling.__init__

    @functools.wraps(build)
    def __init__(
        self: Any, tgt_dict: Dictionary, sampling_topk: int = -1, sampling_topp: float = -1.0
    ) -> None:
        if sampling_topk > len(tgt_dict):
            raise OptionError(
                f"--sampling-topk {sampling_topk}: the dictionary of the target has "
                f"{len(tgt_dict)} symbols; allowed: at most {len(tgt_dict)}, or --sampling alone"
            )
        build(self, tgt_dict, sampling_topk, sampling_topp)

    module.Sampling.__init__ = __init__
