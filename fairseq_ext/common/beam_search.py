"""fairseq's beam search, with the same results in less time.

What differs from fairseq.sequence_generator is how, not what: the best words of a step are found
without sorting the whole vocabulary (``best``), ended hypotheses are noted as tensors and traced
back once at the end, and the device is waited for only where a sentence may leave the batch.
Sampling, diverse and constrained search, prefixes, n-gram blocking and a second language model are
left to fairseq's own loop.

Dimensions: B sentences, K beam, R = B * K rows, V words, S source positions, T steps.
"""

import math
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from fairseq.models import FairseqIncrementalDecoder
from fairseq.search import BeamSearch
from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment
from torch import Tensor

from .products import resting_weights

CHUNK = 16  # words of which ``best`` first looks at the maximum
SHORT = 1 << 13  # numbers that are sorted as fast as they are looked at in chunks
CHECK_ON_GPU = 8  # steps after which sentences may leave the batch: each time waits for the device


def best(log_p: Tensor, sums: Tensor, count: int) -> Tuple[Tensor, Tensor, Tensor]:
    """The continuations with the highest scores, the highest first.

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
    count = min(count, beam * words - 1)
    chunks = words // CHUNK
    flat, places = log_p.flatten(1), None
    if beam * chunks > 2 * count and log_p.numel() > SHORT:
        # word w of the first CHUNK * chunks lies in chunk w % chunks
        inner = torch.arange(0, CHUNK * chunks, chunks, device=log_p.device)
        maxima = log_p[..., : CHUNK * chunks].unflatten(2, (CHUNK, chunks)).amax(2)
        maxima = _no_nan(maxima + sums.unsqueeze(2)).flatten(1)  # (B, K * chunks)
        chosen = maxima.topk(count, dim=1, sorted=False)[1]
        first = chosen // chunks * words + chosen % chunks
        places = (first.unsqueeze(2) + inner).flatten(1)  # (B, count * CHUNK)
        if words % CHUNK:
            rest = torch.arange(CHUNK * chunks, words, device=log_p.device)
            starts = torch.arange(0, beam * words, words, device=log_p.device)
            rest = (starts.unsqueeze(1) + rest).flatten().expand(len(flat), -1)
            places = torch.cat([places, rest], dim=1)
        scores = flat.gather(1, places) + sums.gather(1, places // words)
    else:
        scores = (log_p + sums.unsqueeze(2)).flatten(1)
    scores, found = _no_nan(scores).topk(count, dim=1)
    found = found if places is None else places.gather(1, found)
    return scores, found % words, found // words


def _no_nan(scores: Tensor) -> Tensor:
    return scores.masked_fill_(scores.isnan(), -math.inf)


def _moves(decoder) -> List[Callable]:
    """What fairseq calls to give the rows of a decoder's state a new order, found once.

    fairseq looks for them among all modules at every step.
    """
    found = type(decoder).reorder_incremental_state_scripting
    if found is not FairseqIncrementalDecoder.reorder_incremental_state_scripting:
        return [decoder.reorder_incremental_state_scripting]
    name = "reorder_incremental_state"
    return [getattr(module, name) for module in decoder.modules() if hasattr(module, name)]


def _check_every(tokens: Tensor) -> int:
    return CHECK_ON_GPU if tokens.is_cuda else 1


class _Record:
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
        """attention (R, S) of the step, before its words are chosen."""
        kept = attention.new_zeros(len(self.count), self.beam, attention.size(1))
        kept[alive] = attention.view(-1, self.beam, attention.size(1))
        self.attention.append(kept)

    def end(self, step: int, alive: Tensor, ends: Tensor, parents: Tensor, sums: Tensor) -> None:
        """Note the hypotheses that end; those of a sentence that has K already are not wanted.

        ends (b, K) bool; parents, sums (b, K): the hypotheses that are continued and the scores.
        """
        before = self.count[alive].unsqueeze(1)
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
        """Words and sums (B, K, T) of the ended hypotheses, their attention (B, K, T, S)."""
        end, beam = self.last_step[:, :-1], self.last_parent[:, :-1]  # (B, K)
        words, sums, attention = [], [], []
        for step in reversed(range(int(end.max()) + 1)):
            inside, last = step < end, step == end
            word = self.words[step].gather(1, beam).masked_fill(~inside, pad)
            words.append(word.masked_fill(last, eos))
            here = self.sums[step].gather(1, beam).masked_fill(~inside, 0)
            sums.append(torch.where(last, self.last_sum[:, :-1], here))
            beam = torch.where(inside, self.parents[step].gather(1, beam), beam)
            if self.attention:
                of_step = self.attention[step]  # (B, K, S)
                wanted = beam.unsqueeze(2).expand(-1, -1, of_step.size(2))
                attention.append(of_step.gather(1, wanted))
        found = [torch.stack(parts[::-1], dim=2) for parts in (words, sums, attention) if parts]
        return found[0], found[1], found[2] if attention else None


class _Rows:
    """The words of every row so far, and what the models know of it.

    Args:
        model: fairseq's ensemble.
        net_input: of the batch.
        beam: K.
        empty: a row without words.
        begin: the word that all begin with.
    """

    def __init__(self, model, net_input, beam: int, empty: Tensor, begin: int):
        self.model = model
        sentences = torch.arange(net_input["src_tokens"].size(0), device=empty.device)
        order = sentences.repeat_interleave(beam)
        self.encoded = model.reorder_encoder_out(model.forward_encoder(net_input), order)
        self.states: List[Dict[str, Any]] = [{} for _ in range(model.models_size)]
        self.moves: List[List[Callable]] = []
        if model.has_incremental_states():
            self.moves = [_moves(one.decoder) for one in model.models]
        self.tokens = empty.long().repeat(len(order), 1)
        self.tokens[:, 0] = begin

    def predict(self, step: int, temperature: float) -> Tuple[Tensor, Optional[Tensor]]:
        """Log-probabilities of the next word (R, V), attention (R, S) if the models have it."""
        tokens = self.tokens[:, : step + 1]
        return self.model.forward_decoder(tokens, self.encoded, self.states, temperature)

    def go_on(self, step: int, words: Tensor, order: Tensor, beam: int) -> None:
        """Row r is what row order[r] was, with a word more; sentences may be missing."""
        fewer = len(order) < len(self.tokens)
        if fewer or beam > 1:
            before = self.tokens[:, : step + 1].index_select(0, order)
            self.tokens = self.tokens[: len(order)]
            self.tokens[:, : step + 1] = before
            for state, functions in zip(self.states, self.moves):
                for move in functions:
                    moved = move(state, order)
                    state = state if moved is None else moved
        if fewer:  # otherwise rows only move within a sentence, whose source is the same
            self.encoded = self.model.reorder_encoder_out(self.encoded, order)
        self.tokens[:, step + 1] = words


class BeamSearchGenerator(SequenceGenerator):
    """fairseq's ``SequenceGenerator``; takes its arguments and returns what it returns."""

    def _generate(self, sample, prefix_tokens=None, constraints=None, bos_token=None):
        own = (
            type(self.search) is BeamSearch
            and prefix_tokens is None
            and constraints is None
            and self.lm_model is None
            and self.repeat_ngram_blocker is None
            and not self.match_source_len
            and "src_tokens" in sample["net_input"]
        )
        if not own:
            return super()._generate(sample, prefix_tokens, constraints, bos_token)
        source = sample["net_input"]["src_tokens"]
        steps = min(int(self.max_len_a * source.size(1) + self.max_len_b), self.max_len - 1)
        if self.min_len > steps:
            raise ValueError(
                f"--min-len {self.min_len}: allowed: up to {steps}, the greatest length by "
                "--max-len-a and --max-len-b"
            )
        record = _Record(source.size(0), self.beam_size, steps + 1, source)
        with resting_weights():
            self._search(sample["net_input"], steps, bos_token, record)
        return self._hypotheses(record)

    def _search(self, net_input, steps: int, bos_token: Optional[int], record: _Record) -> None:
        """All steps of all sentences; ``steps``: words before the end symbol, at most."""
        source, beam = net_input["src_tokens"], self.beam_size
        begin = self.eos if bos_token is None else bos_token
        rows = _Rows(self.model, net_input, beam, source.new_full((steps + 2,), self.pad), begin)
        alive = torch.arange(source.size(0), device=source.device)
        firsts = every_first = (alive * beam).unsqueeze(1)  # the first row of a sentence
        sums = torch.zeros(source.size(0), beam, device=source.device)
        blocked = torch.zeros_like(sums, dtype=torch.bool)  # fairseq's cands_to_ignore
        numbers = torch.arange(2 * beam, device=source.device)
        every = _check_every(source)
        for step in range(steps + 1):
            log_p, attention = rows.predict(step, self.temperature)
            self._forbid(step, steps, log_p)
            if attention is not None:
                record.attend(alive, attention)
            # in front of the first step all hypotheses are the same
            log_p = log_p.view(len(alive), beam, -1)[:, : beam if step else 1]
            scores, words, parents = best(log_p, sums[:, : log_p.size(1)].type_as(log_p), 2 * beam)
            ends = words.eq(self.eos) & scores.ne(-math.inf)
            ends[:, :beam] &= ~blocked
            # to ask whether any has ended is worth it where nobody has to wait for the answer
            ended = every > 1 or bool(ends[:, :beam].any())
            if ended:
                record.end(step, alive, ends[:, :beam], parents[:, :beam], scores[:, :beam])
            if step == steps:
                break
            ends[:, :beam] |= blocked
            after = ends.long() * ends.size(1) + numbers[: ends.size(1)]
            after, kept = after.topk(beam, dim=1, largest=False)
            blocked = after.ge(ends.size(1))
            sums, words, parents = (one.gather(1, kept) for one in (scores, words, parents))
            record.go_on(step, alive, words, parents, sums)
            if ended and step % every == 0:
                stay = (record.count[alive] < beam).nonzero().squeeze(1)
                if not len(stay):
                    break
                if len(stay) < len(alive):
                    alive, sums, blocked, words, parents, firsts = (
                        one.index_select(0, stay)
                        for one in (alive, sums, blocked, words, parents, firsts)
                    )
            rows.go_on(step, words.flatten(), (firsts + parents).flatten(), beam)
            firsts = every_first[: len(alive)]

    def _forbid(self, step: int, steps: int, log_p: Tensor) -> None:
        """-inf for words (R, V) that may not come, in place."""
        log_p[:, self.pad] = -math.inf
        if self.unk_penalty:
            log_p[:, self.unk] -= self.unk_penalty
        if step >= steps:
            log_p[:, : self.eos] = -math.inf
            log_p[:, self.eos + 1 :] = -math.inf
        if step < self.min_len:
            log_p[:, self.eos] = -math.inf
        if self.token_indices_to_suppress is not None:
            log_p[:, self.token_indices_to_suppress] = -math.inf

    def _hypotheses(self, record: _Record) -> List[List[Dict[str, Tensor]]]:
        """fairseq's hypotheses of each sentence, the best first."""
        words, sums, attention = record.trace(self.pad, self.eos)
        lengths = record.last_step[:, :-1] + 1
        scores = record.last_sum[:, :-1]
        if self.normalize_scores:
            scores = scores / lengths**self.len_penalty
        gained = torch.cat([sums[..., :1], sums[..., 1:] - sums[..., :-1]], dim=2)
        found = []
        tables = record.count.tolist(), lengths.tolist(), scores.tolist()
        for row, (count, length, score) in enumerate(zip(*tables)):
            if not count:
                raise RuntimeError(
                    f"sentence {row + 1} of the batch: no hypothesis has a finite score; the "
                    "model's probabilities are not finite, or the options leave no word"
                )
            order = sorted(range(count), key=lambda number: -score[number])
            found.append(
                [
                    {
                        "tokens": words[row, number, : length[number]],
                        "score": scores[row, number],
                        "attention": words.new_empty(0, dtype=torch.float)
                        if attention is None
                        else attention[row, number, : length[number]].t(),  # (S, T)
                        "alignment": torch.empty(0),
                        "positional_scores": gained[row, number, : length[number]],
                    }
                    for number in order
                ]
            )
        return found


class BeamSearchWithAlignment(SequenceGeneratorWithAlignment, BeamSearchGenerator):
    """fairseq's ``SequenceGeneratorWithAlignment`` on top of it."""


def own_search(args, options: Dict[str, Any]) -> Dict[str, Any]:
    """What a task's ``build_generator`` hands on so that fairseq builds these generators.

    Args:
        args: the generation options.
        options: what ``build_generator`` was called with; a ``seq_gen_cls`` in it wins.
    """
    if options.get("seq_gen_cls") is not None:
        return options
    more = dict(options.get("extra_gen_cls_kwargs") or {})
    alignment = getattr(args, "print_alignment", None)
    if alignment:
        more["print_alignment"] = alignment
    kind = BeamSearchWithAlignment if alignment else BeamSearchGenerator
    return {**options, "seq_gen_cls": kind, "extra_gen_cls_kwargs": more}
