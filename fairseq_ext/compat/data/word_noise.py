"""The noise of Lample et al. (2018), Sec. 2.3: words are shuffled and dropped."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.data.noising import WordDropout, WordShuffle
    from torch import Tensor


@patch(
    "fairseq.data.noising",
    because="fairseq 0.12.2: the first word of a sentence is never shuffled, because it is taken "
    "for the symbol <s>, which the sentences of fairseq do not begin with",
)
def first_words_are_shuffled(module: PatchedModule) -> None:
    """Keep only <s> and </s> where they are."""

    def noising(
        self: WordShuffle, x: Tensor, lengths: Tensor, max_shuffle_distance: float | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return tokens (T, B) whose words are sorted by position + U(0, distance), lengths (B)."""
        distance = max_shuffle_distance
        if distance is None:
            distance = self.default_max_shuffle_distance
        if distance <= 1:  # no word can pass another
            return x, lengths
        shifts = module.np.random.uniform(0, distance, size=tuple(x.shape))  # (T, B)
        words = self.get_word_idx(x)  # (T, B): the number of the word of each token
        shuffled = x.clone()
        for column, length in enumerate(lengths.tolist()):
            if x[length - 1, column] == self.dictionary.eos():
                length -= 1
            if x[0, column] == self.dictionary.bos():
                shifts[0, column] = -1
            numbers = words[:length, column]
            # stable: tokens of a word, which have the same number, stay in their order
            order = (numbers + shifts[numbers, column]).argsort(kind="stable")
            shuffled[:length, column] = x[:length, column][module.torch.from_numpy(order)]
        return shuffled, lengths

    module.WordShuffle.noising = noising


@patch(
    "fairseq.data.noising",
    because="fairseq 0.12.2: of a sentence whose words are all dropped, the word that is put back "
    "may be </s>",
)
def symbols_are_not_put_back(module: PatchedModule) -> None:
    """Put a word of the sentence back."""
    dropout = module.WordDropout
    stock = dropout.noising

    @functools.wraps(stock)
    def noising(
        self: WordDropout,
        x: Tensor,
        lengths: Tensor,
        dropout_prob: float | None = None,
        blank_idx: int | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return tokens (T, B) without the words that are dropped, and lengths (B)."""
        noisy, noisy_lengths = stock(self, x, lengths, dropout_prob, blank_idx)
        eos = self.dictionary.eos()
        for column, length in enumerate(lengths.tolist()):
            # an empty line has no other symbol
            if length > 1 and noisy[0, column] == eos:
                noisy[0, column] = x[module.np.random.randint(length - 1), column]
        return noisy, noisy_lengths

    dropout.noising = noising
