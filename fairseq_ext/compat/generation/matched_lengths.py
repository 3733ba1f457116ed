"""--match-source-len, whatever the sentences beside a short one.

Dimensions: B sentences, K beam, V words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after, call_before

if TYPE_CHECKING:
    from torch import Tensor


@patch(
    "fairseq.sequence_generator",
    because="fairseq 0.12.2: a batch whose sources all have fewer words than --min-len, empty ones "
    "for example, ends in an AssertionError with --match-source-len",
)
def source_length_wins_over_min_len(module: PatchedModule) -> None:
    """Let --match-source-len alone decide on lengths, as it does in batches of unequal lengths."""

    def forget_min_len(self: Any, *args: Any, **kwargs: Any) -> None:
        if self.match_source_len:
            self.min_len = 0

    call_after(module.SequenceGenerator, "__init__", forget_min_len)


@patch(
    "fairseq.sequence_generator",
    because="fairseq 0.12.2: with --match-source-len, a source that is longer than the decoder's "
    "learned positions ends in an IndexError, and than the limit of any other in a translation "
    "that no training had",
)
def matched_lengths_have_positions(module: PatchedModule) -> None:
    """Refuse by name a source that no translation of the model can match."""

    def check_lengths(self: Any, sample: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        source = sample["net_input"].get("src_tokens")
        if self.match_source_len and source is not None:
            # words, as fairseq counts them here; the end symbol takes a position as well
            words = int((source.ne(self.eos) & source.ne(self.pad)).sum(1).max())
            if words > self.max_len - 1:
                raise ValueError(
                    f"--match-source-len: a source has {words} words, and the model's translations "
                    f"at most {self.max_len - 1} (--max-target-positions); allowed: shorter "
                    "sources, or without the option"
                )

    call_before(module.SequenceGenerator, "_generate", check_lengths)


@patch(
    "fairseq.search",
    because="fairseq 0.12.2: with --match-source-len, translations that are too long take places "
    "of the n-best list where another sentence of the batch is longer, and have the score -inf",
)
def too_long_translations_take_no_place(module: PatchedModule) -> None:
    """End the hypotheses of a sentence where it ends, as those of the longest one end."""
    search = module.LengthConstrainedBeamSearch

    def rule_out_words(self: Any, step: int, lprobs: Tensor, *more: Any, **options: Any) -> None:
        """lprobs: (B, K, V), changed in place; that of the end symbol is set to 0 afterwards."""
        is_over = step >= self.max_len_a * self.src_lengths + self.max_len_b  # (B,)
        # below all that ends, but finite: where fewer than K hypotheses can end here, as for an
        # empty source, fairseq needs others that it rules out to finish the sentence
        lprobs -= 1e4 * is_over.view(-1, 1, 1)

    call_before(search, "step", rule_out_words)
