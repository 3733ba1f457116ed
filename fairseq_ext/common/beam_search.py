"""fairseq's beam search, with the same results in less time.

What differs from fairseq.sequence_generator is how, not what: the best words of a step are found
without sorting the whole vocabulary (``topk_candidates``), ended hypotheses are noted as tensors
and traced back once at the end, and the device is waited for only where a sentence may leave the
batch.
Sampling, diverse and constrained search, prefixes, n-gram blocking, --match-source-len, a second
language model and searches whose ``step`` is not fairseq's are left to fairseq's own loop;
FAIRSEQ_EXT_SEARCH=0 in the environment leaves every search to it.

Dimensions: B sentences, K beam, R = B * K rows, V words, S source positions, T steps.
"""

import math
import os
from typing import Any, Dict, List, Optional, Protocol, Sequence

import torch
from fairseq import search
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment
from torch import Tensor

from ..compat.generation.length_limits import sentence_limits
from .products import WeightCache
from .search_record import SearchRecord, topk_candidates
from .search_rows import SearchRows, steps_between_checks

SWITCH = "FAIRSEQ_EXT_SEARCH"

# fairseq's batch {"net_input": {name: tensor}, ...}
Sample = Dict[str, Any]
# fairseq's hypotheses of each sentence, the best first: {"tokens", "score", "attention", ...}
Hypotheses = List[List[Dict[str, Tensor]]]


class ConstraintState(Protocol):
    """What a constraint on the hypotheses knows of the R rows of a search."""

    def allowed(self, left: Tensor) -> Tensor:
        """Return which words may come next (R, V); at most ``left`` (R,) before the end."""

    def advance(self, words: Tensor, order: Tensor) -> None:
        """Row r becomes row ``order[r]`` with ``words[r]`` behind it; (R',) each."""


class SearchConstraint(Protocol):
    """A constraint on hypotheses, such as their number of words."""

    option: str

    def start(self, tokens: Tensor, beam: int, limits: Tensor) -> ConstraintState:
        """Return the state before the first step; sources (B, S), ``limits`` (B,) on words."""


class BeamSearchGenerator(SequenceGenerator):
    """fairseq's ``SequenceGenerator``; takes its arguments and returns what it returns.

    Args:
        first_tokens: tokens in front of every source that are no words, for --match-source-len and
            --max-len-a.
        constraint: on the hypotheses; only this search knows it.
    """

    max_len_a: float
    max_len_b: int

    def __init__(
        self,
        models: Sequence[BaseFairseqModel],
        tgt_dict: Dictionary,
        first_tokens: int = 0,
        constraint: Optional[SearchConstraint] = None,
        **options: Any,
    ):
        super().__init__(models, tgt_dict, **options)
        self.first_tokens, self.constraint = first_tokens, constraint
        # of models that are not trained any more, and the parameters that it was computed from
        self._prepared, self._versions = WeightCache(), [(0, 0)]
        # fairseq's loop, which takes all other options, knows no constraints
        if constraint is not None and not (self._is_plain() and self.min_len <= 1):
            raise ValueError(
                f"{constraint.option}: allowed with a plain beam search, without --min-len, "
                "--match-source-len, --no-repeat-ngram-size, --lm-path, --constraints, sampling, "
                f"diverse search and a step of one's own, and without {SWITCH}=0 in the environment"
            )

    def _is_plain(self) -> bool:
        """True if the options leave the search to this class."""
        return (
            os.environ.get(SWITCH) != "0"
            and type(self.search) is search.BeamSearch
            # not a function that a program has put in its place, on the class or the instance
            and getattr(self.search.step, "__globals__", None) is vars(search)
            and self.lm_model is None
            and self.repeat_ngram_blocker is None
            and not self.match_source_len
        )

    def finalize_hypos(self, *arguments: Any) -> List[int]:
        """Store ended hypotheses as fairseq does; source lengths count words.

        --match-source-len gives -inf to what is longer than its source, the last argument but one.
        """
        *before, src_lengths, max_len = arguments
        return super().finalize_hypos(*before, src_lengths - self.first_tokens, max_len)

    def _generate(
        self,
        sample: Sample,
        prefix_tokens: Optional[Tensor] = None,
        constraints: Optional[Tensor] = None,
        bos_token: Optional[int] = None,
    ) -> Hypotheses:
        is_plain = self._is_plain() and prefix_tokens is None and constraints is None
        if not (is_plain and "src_tokens" in sample["net_input"]):
            return self._generate_by_fairseq(sample, prefix_tokens, constraints, bos_token)
        source = sample["net_input"]["src_tokens"]
        # - 1: the end symbol takes a position of the decoder as well
        steps = min(self._longest(source.size(1)), self.max_len - 1)
        if self.min_len > steps:
            raise ValueError(
                f"--min-len {self.min_len}: allowed: up to {steps}, the greatest length by "
                "--max-len-a and --max-len-b"
            )
        limits = sentence_limits(self, sample["net_input"])  # (B,)
        if limits is None:
            limits = source.new_full((source.size(0),), steps, dtype=torch.long)
        state = None
        if self.constraint is not None:
            state = self.constraint.start(source, self.beam_size, limits)
        record = SearchRecord(source.size(0), self.beam_size, steps + 1, source)
        with self._weights().active():  # no parameter changes during the search
            self._search(sample["net_input"], limits, bos_token, record, state)
        return self._hypotheses(record)

    def _weights(self) -> WeightCache:
        """Return what searches compute from parameters alone.

        Each search has its own, except for models that fairseq has prepared for inference. Of
        those, values that a program writes through ``Parameter.data`` go unnoticed.
        """
        models = self.model.models
        parameters = [parameter for model in models for parameter in model.parameters()]
        is_counted = not any(parameter.is_inference() for parameter in parameters)
        # what is loaded in torch's inference mode does not count the writes to it
        if not (is_counted and all(model._is_generation_fast for model in models)):
            return WeightCache()
        # fairseq trains such models no more, but a program may give them other weights
        versions = [(parameter.data_ptr(), parameter._version) for parameter in parameters]
        if versions != self._versions:
            self._prepared, self._versions = WeightCache(), versions
        return self._prepared

    def _longest(self, positions: int) -> int:
        """Return the number of words that --max-len-a and --max-len-b allow in a batch."""
        return int(self.max_len_a * (positions - self.first_tokens) + self.max_len_b)

    def _generate_by_fairseq(
        self,
        sample: Sample,
        prefix_tokens: Optional[Tensor],
        constraints: Optional[Tensor],
        bos_token: Optional[int],
    ) -> Hypotheses:
        """Return the hypotheses of fairseq's own loop."""
        if self.constraint is not None:
            raise ValueError(f"{self.constraint.option}: not allowed with --prefix-size")
        return super()._generate(sample, prefix_tokens, constraints, bos_token)

    def _start(
        self, net_input: Dict[str, Tensor], steps: int, bos_token: Optional[int]
    ) -> SearchRows:
        """Return the rows before the first step, with room for all steps."""
        # room for the first symbol, the words and the end symbol
        empty = net_input["src_tokens"].new_full((steps + 2,), self.pad)
        begin = self.eos if bos_token is None else bos_token
        return SearchRows(self.model, net_input, self.beam_size, empty, begin)

    def _search(
        self,
        net_input: Dict[str, Tensor],
        limits: Tensor,
        bos_token: Optional[int],
        record: SearchRecord,
        state: Optional[ConstraintState],
    ) -> None:
        """Take all steps of all sentences; ``limits`` (B,): words before the end symbol."""
        source, beam, steps = net_input["src_tokens"], self.beam_size, len(record.words) - 1
        rows = self._start(net_input, steps, bos_token)
        alive = torch.arange(source.size(0), device=source.device)  # (b,), those that go on
        firsts = every_first = (alive * beam).unsqueeze(1)  # the first row of a sentence
        sums = torch.zeros(source.size(0), beam, device=source.device)  # log P (b, K)
        blocked = torch.zeros_like(sums, dtype=torch.bool)  # fairseq's cands_to_ignore
        numbers = torch.arange(2 * beam, device=source.device)
        every = steps_between_checks(source)
        for step in range(steps + 1):
            log_p, attention = rows.predict(step, self.temperature)  # (R, V), (R, S)
            self._forbid(step, steps, (limits - step).repeat_interleave(beam), log_p, state)
            if attention is not None:
                record.attend(alive, attention)
            log_p = log_p.view(len(alive), beam, -1)[:, : beam if step else 1]  # alike at first
            before = sums[:, : log_p.size(1)].type_as(log_p)
            # Each of the K hypotheses ends in one way, so that at least K of the 2 K best go on.
            scores, words, parents = topk_candidates(log_p, before, 2 * beam)  # (b, 2 K) each
            # an end symbol behind the best K ends no hypothesis, but is not continued either
            ends = words.eq(self.eos) & scores.ne(-math.inf)
            ends[:, :beam] &= ~blocked
            # to ask whether any has ended is worth it where nobody has to wait for the answer
            ended = every > 1 or bool(ends[:, :beam].any())
            if ended:
                record.end(step, alive, ends[:, :beam], parents[:, :beam], scores[:, :beam])
            if step == steps:
                break
            ends[:, :beam] |= blocked
            # the smallest numbers are those of candidates that do not end, the best first
            after = ends.long() * ends.size(1) + numbers[: ends.size(1)]
            after, order = after.topk(beam, dim=1, largest=False)
            blocked = after.ge(ends.size(1))  # where fewer than K go on
            sums, words, parents = (part.gather(1, order) for part in (scores, words, parents))
            record.go_on(step, alive, words, parents, sums)
            if ended and step % every == 0:
                unfinished = record.count[alive] < beam  # (b,)
                # a constraint or a limit may leave fewer than K hypotheses that go on
                unfinished &= sums.gt(-math.inf).any(dim=1)
                stay = unfinished.nonzero().squeeze(1)  # waits for the device
                if not len(stay):
                    break
                if len(stay) < len(alive):
                    parts = alive, limits, sums, blocked, words, parents, firsts
                    alive, limits, sums, blocked, words, parents, firsts = (
                        part.index_select(0, stay) for part in parts
                    )
            order = (firsts + parents).flatten()  # rows numbered as before sentences left
            rows.go_on(step, words.flatten(), order, beam)
            if state is not None:
                state.advance(words.flatten(), order)
            firsts = every_first[: len(alive)]  # the rows that are left have no gaps

    def _forbid(
        self,
        step: int,
        steps: int,
        left: Tensor,
        log_p: Tensor,
        state: Optional[ConstraintState],
    ) -> None:
        """Set log_p (R, V) of the words that may not come to -inf, in place.

        left: words that there is room for (R,); ``steps`` in all, at most.
        """
        if state is not None:
            allowed = state.allowed(left)  # (R, V)
            if step < self.min_len:
                # a target that may have no further word ends, however short it is
                allowed[:, self.eos] &= allowed.sum(dim=1).eq(1)
            log_p.masked_fill_(~allowed, -math.inf)
        elif step < self.min_len:
            log_p[:, self.eos] = -math.inf
        log_p[:, self.pad] = -math.inf
        if self.unk_penalty:
            log_p[:, self.unk] -= self.unk_penalty
        # no limit is lower than this; without room for a further word, hypotheses end
        if step >= min(self.max_len_b, steps):
            end = log_p[:, self.eos].clone()
            log_p.masked_fill_(left.le(0).unsqueeze(1), -math.inf)
            log_p[:, self.eos] = end
        if self.token_indices_to_suppress is not None:
            log_p[:, self.token_indices_to_suppress] = -math.inf

    def _hypotheses(self, record: SearchRecord) -> Hypotheses:
        """Return fairseq's hypotheses of each sentence, the best first."""
        words, sums, attention = record.trace(self.pad, self.eos)
        # T of each hypothesis, the end symbol included, by which fairseq divides as well
        lengths = record.last_step[:, :-1] + 1
        scores = record.last_sum[:, :-1]
        if self.normalize_scores:
            # JSON and Python give -1 where the command line gives -1.0; torch has no int**-1
            scores = scores / lengths ** float(self.len_penalty)
        # log p of each word is the difference of two sums
        gained = torch.cat([sums[..., :1], sums[..., 1:] - sums[..., :-1]], dim=2)
        sentences: Hypotheses = []
        tables = record.count.tolist(), lengths.tolist(), scores.tolist()
        for row, (count, length, score) in enumerate(zip(*tables)):
            if not count:
                raise RuntimeError(
                    f"sentence {row + 1} of the batch: no hypothesis has a finite score; the "
                    "model's probabilities are not finite, or the options leave no word"
                )
            # hypotheses end at different steps, so that they stand in the order of their ends
            order = sorted(range(count), key=lambda number: -score[number])
            sentences.append(
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
        return sentences


class BeamSearchWithAlignment(SequenceGeneratorWithAlignment, BeamSearchGenerator):
    """fairseq's ``SequenceGeneratorWithAlignment`` on top of it."""
