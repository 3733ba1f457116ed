"""What a beam search chooses in a step, and the record of what it chose.

Dimensions: B sentences, b those that go on, K beam, V words, S source positions, T steps.
"""

import math
from typing import List, Optional, Tuple

import torch
from torch import Tensor

CHUNK = 16  # words of which ``topk_candidates`` first looks at the maximum
SORTED_WHOLE = 1 << 13  # numbers that are sorted as fast as they are looked at in chunks


def topk_candidates(log_p: Tensor, sums: Tensor, count: int) -> Tuple[Tensor, Tensor, Tensor]:
    """Return the continuations with the highest scores, the highest first.

    Each of the ``count`` best lies in one of the ``count`` chunks with the highest maxima, so that
    only those are sorted. NaN counts as -inf.

    Args:
        log_p: (B, K, V), of each word after each hypothesis.
        sums: (B, K), what is added to all words of a hypothesis.
        count: how many; at most K * V - 1 are returned.

    Returns:
        scores, words and hypotheses, (B, count) each.
    """
    beam, words = log_p.shape[1:]
    # one less than there are, as in fairseq, so that pad is never chosen
    count = min(count, beam * words - 1)
    chunks = words // CHUNK
    flat = log_p.flatten(1)
    places: Optional[Tensor] = None
    # chunks pay where most of them are left out, and where sorting everything takes time
    if beam * chunks > 2 * count and log_p.numel() > SORTED_WHOLE:
        # word w of the first CHUNK * chunks lies in chunk w % chunks
        inner = torch.arange(0, CHUNK * chunks, chunks, device=log_p.device)
        maxima = log_p[..., : CHUNK * chunks].unflatten(2, (CHUNK, chunks)).amax(2)
        maxima = _no_nan(maxima + sums.unsqueeze(2)).flatten(1)  # (B, K * chunks)
        chosen = maxima.topk(count, dim=1, sorted=False)[1]  # (B, count)
        # chunk k * chunks + c begins at word c of hypothesis k
        first = chosen // chunks * words + chosen % chunks
        places = (first.unsqueeze(2) + inner).flatten(1)  # (B, count * CHUNK)
        # the last words lie in no chunk: they all take part
        if words % CHUNK:
            rest = torch.arange(CHUNK * chunks, words, device=log_p.device)
            starts = torch.arange(0, beam * words, words, device=log_p.device)
            rest = (starts.unsqueeze(1) + rest).flatten().expand(len(flat), -1)
            places = torch.cat([places, rest], dim=1)
        scores = flat.gather(1, places) + sums.gather(1, places // words)
    else:
        scores = (log_p + sums.unsqueeze(2)).flatten(1)
    scores, best = _no_nan(scores).topk(count, dim=1)  # (B, count)
    best = best if places is None else places.gather(1, best)
    return scores, best % words, best // words


def _no_nan(scores: Tensor) -> Tensor:
    """Return the scores, with -inf in place of NaN, in place."""
    return scores.masked_fill_(scores.isnan(), -math.inf)


class SearchRecord:
    """What was chosen at every step, and which hypotheses have ended.

    A sentence has the number that it had in the batch at the start.

    Args:
        sentences, beam, steps: B, K and the highest T.
        like: a tensor on the device.
    """

    def __init__(self, sentences: int, beam: int, steps: int, like: Tensor):
        self.beam = beam
        whole, real = torch.long, torch.float
        history = steps, sentences, beam
        self.words = torch.zeros(history, dtype=whole, device=like.device)
        self.parents = torch.zeros(history, dtype=whole, device=like.device)
        self.sums = torch.zeros(history, dtype=real, device=like.device)
        self.attention: List[Tensor] = []  # (B, K, S) each
        # of ended hypotheses; the last column takes what is more than K
        ended = sentences, beam + 1
        self.count = torch.zeros(sentences, dtype=whole, device=like.device)
        self.last_step = torch.zeros(ended, dtype=whole, device=like.device)
        self.last_parent = torch.zeros(ended, dtype=whole, device=like.device)
        self.last_sum = torch.zeros(ended, dtype=real, device=like.device)

    def attend(self, alive: Tensor, attention: Tensor) -> None:
        """Store the attention (R, S) of the step, before its words are chosen."""
        of_all = attention.new_zeros(len(self.count), self.beam, attention.size(1))
        of_all[alive] = attention.view(-1, self.beam, attention.size(1))
        self.attention.append(of_all)

    def end(self, step: int, alive: Tensor, ends: Tensor, parents: Tensor, sums: Tensor) -> None:
        """Note the hypotheses that end; those of a sentence that has K already are not wanted.

        ends (b, K) bool; parents, sums (b, K): the hypotheses that are continued and the scores.
        """
        before = self.count[alive].unsqueeze(1)
        # behind those that ended earlier, in order; what does not end goes to the last column
        slots = (before + ends.long().cumsum(1) - 1).masked_fill(~ends, self.beam)
        slots = slots.clamp(max=self.beam)  # (b, K)
        rows = alive.unsqueeze(1)
        self.last_step[rows, slots] = step
        self.last_parent[rows, slots] = parents
        self.last_sum[rows, slots] = sums.float()
        self.count[alive] = (before.squeeze(1) + ends.sum(1)).clamp(max=self.beam)

    def go_on(self, step: int, alive: Tensor, words: Tensor, parents: Tensor, sums: Tensor) -> None:
        """Note the K hypotheses of each sentence after the step: (b, K) each."""
        self.words[step, alive] = words
        self.parents[step, alive] = parents
        self.sums[step, alive] = sums.float()

    def trace(self, pad: int, eos: int) -> Tuple[Tensor, Tensor, Optional[Tensor]]:
        """Return words and sums (B, K, T) of the ended hypotheses, their attention (B, K, T, S).

        Each hypothesis is followed from its end to its beginning, from parent to parent.
        """
        end, beam = self.last_step[:, :-1], self.last_parent[:, :-1]  # (B, K)
        words, sums, attention = [], [], []
        for step in reversed(range(int(end.max()) + 1)):
            inside, last = end.gt(step), end.eq(step)  # (B, K)
            word = self.words[step].gather(1, beam).masked_fill(~inside, pad)
            words.append(word.masked_fill(last, eos))
            here = self.sums[step].gather(1, beam).masked_fill(~inside, 0)
            sums.append(torch.where(last, self.last_sum[:, :-1], here))
            # from here on the rows are those that the step continued, and that looked at the source
            beam = torch.where(inside, self.parents[step].gather(1, beam), beam)
            if self.attention:
                of_step = self.attention[step]  # (B, K, S)
                index = beam.unsqueeze(2).expand(-1, -1, of_step.size(2))
                attention.append(of_step.gather(1, index))
        traced = [torch.stack(parts[::-1], dim=2) for parts in (words, sums, attention) if parts]
        return traced[0], traced[1], traced[2] if attention else None
