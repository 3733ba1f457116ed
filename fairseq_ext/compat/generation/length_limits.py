"""--max-len-a counts a sentence's own length, not that of the longest one beside it.

Dimensions: B sentences, b of them not finished, K beam, V words, S source positions.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from torch import Tensor


def sentence_limits(generator: Any, net_input: dict[str, Any]) -> Tensor | None:
    """Return the number of words that each sentence's translation may have (B,).

    This is --max-len-a times the length of the source, the end symbol included, plus --max-len-b;
    at most what the model has positions for, at least --min-len. None if all have the same limit
    by the options, or if no lengths are known.
    """
    if not generator.max_len_a or generator.match_source_len:
        return None
    lengths = _source_lengths(net_input, generator.pad)
    if lengths is None:
        return None
    words = lengths.double() - getattr(generator, "first_tokens", 0)
    limits = (generator.max_len_a * words + generator.max_len_b).long()  # as int() rounds
    # - 1: the end symbol takes a position of the decoder as well
    return limits.clamp(min=generator.min_len).clamp(max=generator.max_len - 1)


def _source_lengths(net_input: dict[str, Any], pad: int) -> Tensor | None:
    """Return the positions of each source (B,) without padding, None if the batch does not say."""
    tokens = net_input.get("src_tokens")  # (B, S), or features (B, S, F)
    if tokens is not None and tokens.dim() == 2:
        return tokens.ne(pad).sum(dim=1)
    if net_input.get("src_lengths") is not None:
        return net_input["src_lengths"]
    padding = net_input.get("padding_mask")  # (B, S), True where nothing is
    return None if padding is None else padding.logical_not().sum(dim=1)


class SentenceLimits:
    """The limits of the sentences of one batch, within fairseq's loop.

    Args:
        generator: fairseq's, the search of which has the limits from ``__enter__`` to ``__exit__``.
        limits: in words (B,).
        numbers: by which fairseq's loop tells sentences that are not finished (B,).
    """

    def __init__(self, generator: Any, limits: Tensor, numbers: Tensor):
        self.generator, self.limits, self.numbers = generator, limits, numbers
        self.is_over = limits.lt(0)  # (b,), at the present step

    def __enter__(self) -> None:
        generator, search = self.generator, self.generator.search
        self._step, self._is_finished = search.step, generator.is_finished
        # a program may have replaced them on the instance: these remain for the next batch
        self._before = [
            (owner, name, vars(owner).get(name))
            for owner, name in ((search, "step"), (generator, "is_finished"))
        ]
        search.step, generator.is_finished = self.step, self.is_finished

    def __exit__(self, *error: Any) -> None:
        for owner, name, function in self._before:
            delattr(owner, name)
            if function is not None:
                setattr(owner, name, function)

    def step(
        self, step: int, lprobs: Tensor, scores: Any, tokens: Any, numbers: Tensor, *more: Any
    ) -> Any:
        """Choose words, but the end alone where a limit is reached; lprobs (b, K, V) change."""
        place = self.numbers.eq(numbers.unsqueeze(1)).long().argmax(dim=1)  # (b,)
        self.is_over = self.limits[place].le(step)
        words = lprobs.new_ones(lprobs.size(2)).bool()  # (V,)
        words[self.generator.eos] = False
        lprobs.masked_fill_(self.is_over.view(-1, 1, 1) & words, -math.inf)
        return self._step(step, lprobs, scores, tokens, numbers, *more)

    def is_finished(self, step: int, sentence: int, *more: Any) -> bool:
        """Tell whether the search of a sentence ends; its number is among the b."""
        return bool(self.is_over[sentence]) or self._is_finished(step, sentence, *more)

    def prefixes(self, prefix_tokens: Tensor | None) -> Tensor | None:
        """Return the words that translations begin with (B, P), as far as the limits allow."""
        if prefix_tokens is None:
            return None
        columns = prefix_tokens.new_ones(prefix_tokens.size(1)).cumsum(dim=0) - 1
        return prefix_tokens.masked_fill(columns >= self.limits.unsqueeze(1), self.generator.pad)


def _with_empty_prefixes(
    generator: Any, limits: Tensor | None, prefix_tokens: Tensor
) -> Tensor | None:
    """Return the limits (B,) with 0 for sentences whose prefix is the end; None without limits.

    All hypotheses of such a sentence are the empty one: fairseq's loop would wait for K of them.
    """
    is_empty = prefix_tokens[:, 0].eq(generator.eos)  # (B,)
    if not is_empty.any():
        return limits
    if limits is None:
        limits = prefix_tokens.new_full(is_empty.shape, generator.max_len)
    return limits.masked_fill(is_empty, 0)


@patch(
    "fairseq.sequence_generator",
    because="fairseq 0.12.2: --max-len-a counts the padding of a source: how long a translation "
    "may be, and so a score that ends training early, depends on the sentences beside it; with "
    "--prefix-size, a set with an empty target ends in an AssertionError",
)
def length_limits_are_of_each_sentence(module: PatchedModule) -> None:
    """Give each sentence of a batch its own limit."""
    stock = module.SequenceGenerator._generate

    @functools.wraps(stock)
    def _generate(
        self: Any,
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
        bos_token: int | None = None,
    ) -> Any:
        limits = sentence_limits(self, sample["net_input"])
        if prefix_tokens is not None and prefix_tokens.size(1):
            limits = _with_empty_prefixes(self, limits, prefix_tokens)
        if limits is None:
            return stock(self, sample, prefix_tokens, constraints, bos_token)
        numbers = sample.get("id")
        if not isinstance(numbers, type(limits)):
            numbers = limits.new_ones(len(limits)).cumsum(dim=0) - 1
        batch = SentenceLimits(self, limits, numbers)
        with batch:
            return stock(self, sample, batch.prefixes(prefix_tokens), constraints, bos_token)

    module.SequenceGenerator._generate = _generate
