"""Words that --sampling draws.

Dimensions: B sentences, K beam, V words.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before
from ..user_errors import OptionError

if TYPE_CHECKING:
    from argparse import Namespace

    from fairseq.data import Dictionary
    from fairseq.dataclass.configs import FairseqConfig
    from torch import Tensor


def check_samples(generation: Any) -> None:
    """Raise OptionError for --sampling with which commands would print a part of the samples.

    Args:
        generation: the options of the search. The default of --beam is 5, that of --nbest 1.
    """
    beam, nbest = generation.beam, generation.nbest
    if generation.sampling and nbest != beam:
        raise OptionError(
            f"--sampling with --nbest {nbest} and --beam {beam}, the number of translations that "
            "are drawn, all of which are printed; allowed: the same number for both, such as "
            f"--beam {nbest} --nbest {nbest}"
        )


@patch(
    "fairseq_cli.generate",
    because="fairseq 0.12.2: --sampling with another --nbest than --beam ends in an AssertionError "
    "that does not say what they are; by their defaults they differ",
)
def samples_are_all_printed(module: PatchedModule) -> None:
    """Name both options and their values."""

    def check_options(cfg: FairseqConfig | Namespace) -> None:
        check_samples(getattr(cfg, "generation", cfg))

    call_before(module, "main", check_options)


@patch(
    "fairseq.search",
    because="fairseq 0.12.2: --sampling-topk above the number of words ends in a RuntimeError that "
    "names neither",
)
def samples_are_of_the_words(module: PatchedModule) -> None:
    """Raise OptionError where there are fewer words to draw from."""

    def check_words(
        self: Any, tgt_dict: Dictionary, sampling_topk: int = -1, sampling_topp: float = -1.0
    ) -> None:
        if sampling_topk > len(tgt_dict):
            raise OptionError(
                f"--sampling-topk {sampling_topk}: the dictionary of the target has "
                f"{len(tgt_dict)} symbols; allowed: at most {len(tgt_dict)}, or --sampling alone"
            )

    call_before(module.Sampling, "__init__", check_words)


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
