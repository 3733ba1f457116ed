"""Words that --sampling draws.

Dimensions: B sentences, K beam, V words.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..user_errors import OptionError

if TYPE_CHECKING:
    from fairseq.data import Dictionary
    from torch import Tensor


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


@patch(
    "fairseq.search",
    because="fairseq 0.12.2: where the end is not allowed (--min-len), or other words, "
    "--sampling-topp takes its share of what the model gave all words, and draws from all; where "
    "P of all words that are left is 0 in floating point, sampling ends in a RuntimeError",
)
def samples_are_of_what_is_allowed(module: PatchedModule) -> None:
    """Draw by the probabilities of the words that are allowed; scores are those of the model."""
    search = module.Sampling
    step_of = search.step

    @functools.wraps(step_of)
    def step(
        self: Any, step: int, lprobs: Tensor, scores: Tensor, *more: Any, **options: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        """lprobs: (B, K, V), -inf where a word is not allowed; scores: (B, K, step)."""
        # fairseq writes into what it draws from
        allowed = lprobs.log_softmax(dim=2)
        _, words, rows = step_of(self, step, allowed, scores, *more, **options)
        sums = lprobs.flatten(1).gather(1, rows * lprobs.size(2) + words)  # (B, K)
        if step > 0:
            sums = sums + scores[:, :, step - 1].gather(1, rows)
        return sums, words, rows

    search.step = step
