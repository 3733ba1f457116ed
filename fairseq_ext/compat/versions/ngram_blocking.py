"""--no-repeat-ngram-size without fairseq's CUDA extension: on CPUs, above all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from torch import Tensor


def _no_repeat_ngram(
    self, tokens: Tensor, lprobs: Tensor, bsz: int, beam_size: int, step: int
) -> Tensor:
    """Set to -inf, in place, what would repeat an n-gram; return lprobs.

    A row where that leaves nothing, such as the next word of --prefix-size, stays as it is.
    tokens (R, T): the start symbol, ``step`` words and padding. lprobs (R, V).
    torch.jit compiles this as a method of this name, which is why ``self`` has no annotation.
    """
    size = self.no_repeat_ngram_size
    if step + 1 >= size:
        ngrams = tokens[:, : step + 1].unfold(1, size, 1)  # (R, N, size)
        if size == 1:  # the start symbol, which is the end symbol too, is no word
            ngrams = ngrams[:, 1:]
        last = tokens[:, step + 2 - size : step + 1].unsqueeze(1)  # (R, 1, size - 1)
        # the words in front of the next one, at every place where they stood before
        repeats = (ngrams[:, :, : size - 1] == last).all(dim=2)  # (R, N)
        places = repeats.nonzero()
        words = ngrams[places[:, 0], places[:, 1], size - 1]  # what followed there (places,)
        rows = places[:, 0]  # (places,)
        before = lprobs[rows, words]
        lprobs[rows, words] = float("-inf")
        is_empty = lprobs.max(dim=1).values.eq(float("-inf"))[rows]
        lprobs[rows[is_empty], words[is_empty]] = before[is_empty]
    return lprobs


@patch(
    "fairseq.ngram_repeat_block",
    because="fairseq 0.12.2: without its CUDA extension --no-repeat-ngram-size has no effect: the "
    "last words are looked for in the padding behind them",
)
def repeated_ngrams_are_forbidden(module: PatchedModule) -> None:
    """Compare the last words of a hypothesis with those before them."""
    module.NGramRepeatBlock._no_repeat_ngram = _no_repeat_ngram
