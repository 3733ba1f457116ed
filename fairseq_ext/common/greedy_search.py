"""Translations word by word: the best word, or one drawn by its probability.

This is the search for translations that a training step needs of its own batch. It notes no scores
and builds nothing on the host, and takes half the time of a beam search with beam 1, whose words it
returns. Dimensions: B sentences, V words, S source positions, T steps.
"""

from typing import Any, Callable, Dict, Tuple

import torch
from fairseq.models import FairseqEncoderDecoderModel
from torch import Tensor

from .products import WeightCache
from .search_rows import reorder_functions, reordered, steps_between_checks

# (logits (R, V), numbers of the sentences (R,), step) -> words (R,)
Choose = Callable[[Tensor, Tensor, int], Tensor]
ENDED_ONE_IN = 8  # rows leave the batch where at least one in so many has ended


def best_word(logits: Tensor, sentences: Tensor, step: int) -> Tensor:
    """Return the words with the highest logits (R, V) -> (R,)."""
    return logits.argmax(dim=1)


@torch.no_grad()
def greedy_search(
    model: FairseqEncoderDecoderModel,
    net_input: Dict[str, Tensor],
    longest: Tensor,
    steps: int,
    choose: Choose = best_word,
) -> Tuple[Tensor, Tensor]:
    """Return words (B, T), padded on the right, without end symbols, and their numbers (B,).

    As in fairseq-generate a translation has at least one word, and what has not ended is cut.

    Args:
        model: of one direction, in evaluation mode.
        net_input: "src_tokens" (B, S) and "src_lengths" (B,).
        longest: words of each translation at most (B,).
        steps: the greatest of ``longest``.
        choose: the next words.
    """
    dictionary = model.decoder.dictionary
    every = steps_between_checks(net_input["src_tokens"])
    with WeightCache().active():
        search = _Search(model, net_input, longest, steps)
        for step in range(steps):
            logits = search.logits(step)  # (R, V)
            logits[:, dictionary.pad()] = -torch.inf
            if step == 0:
                logits[:, dictionary.eos()] = -torch.inf
            search.go_on(step, choose(logits, search.sentences, step))
            if (step + 1) % every == 0 and search.has_ended(step):
                break
    lengths = search.lengths
    words = search.words[:, : step + 1] if steps else search.words
    outside = torch.arange(words.size(1), device=words.device) >= lengths.unsqueeze(1)  # (B, T)
    return words.masked_fill(outside, dictionary.pad()), lengths


class _Search:
    """The rows that have not ended, and the words of all sentences.

    Args:
        model, net_input, longest, steps: those of ``greedy_search``.
    """

    def __init__(
        self,
        model: FairseqEncoderDecoderModel,
        net_input: Dict[str, Tensor],
        longest: Tensor,
        steps: int,
    ):
        source = net_input["src_tokens"]
        self.encoder, self.decoder = model.encoder, model.decoder
        self.eos = model.decoder.dictionary.eos()
        self.encoded = model.encoder(source, src_lengths=net_input["src_lengths"])
        self.state: Dict[str, Any] = {}
        self.reorders = reorder_functions(model.decoder)
        count, device = source.size(0), source.device
        self.words = source.new_zeros(count, steps)  # (B, T)
        self.lengths = longest.clone()  # (B,): so many words where no end symbol comes before
        self.sentences = torch.arange(count, device=device)  # (R,): those of the rows
        # what the decoder reads, (R, T + 1)
        self.read = source.new_full((count, steps + 1), self.eos)
        self.ended = longest.le(0)  # (R,)

    def logits(self, step: int) -> Tensor:
        """Return the logits of the next word (R, V)."""
        output = self.decoder(
            self.read[:, : step + 1], encoder_out=self.encoded, incremental_state=self.state
        )
        return output[0][:, -1]

    def go_on(self, step: int, chosen: Tensor) -> None:
        """Add a word (R,) to each row; rows that have ended get words that do not count."""
        is_end = chosen.eq(self.eos) & ~self.ended  # (R,)
        length = self.lengths[self.sentences]
        self.lengths[self.sentences] = torch.where(is_end, torch.full_like(length, step), length)
        self.words[self.sentences, step] = chosen
        self.read[:, step + 1] = chosen
        self.ended = self.lengths[self.sentences] <= step + 1

    def has_ended(self, step: int) -> bool:
        """True if all rows have ended; of some that have, all leave the batch. Waits for them."""
        ended = int(self.ended.sum())
        if ended == len(self.ended):
            return True
        if ended * ENDED_ONE_IN >= len(self.ended):
            self._leave((~self.ended).nonzero().squeeze(1))
        return False

    def _leave(self, order: Tensor) -> None:
        """Go on with the rows ``order`` (R',) alone."""
        self.state = reordered(self.state, self.reorders, order)
        self.encoded = self.encoder.reorder_encoder_out(self.encoded, order)
        self.sentences, self.read = self.sentences[order], self.read[order]
        self.ended = self.ended[order]
