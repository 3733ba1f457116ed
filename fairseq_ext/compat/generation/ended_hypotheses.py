"""Searches that tell hypotheses that have ended from those that go on.

Dimensions: B sentences, K beam, V words, T words so far.
"""

from __future__ import annotations

import functools
import logging
import math
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after, call_before

if TYPE_CHECKING:
    from torch import Tensor

logger = logging.getLogger(__name__)


@patch(
    "fairseq.sequence_generator",
    because="fairseq 0.12.2: where translations end with the tag of a language, as with "
    "translation_from_pretrained_bart, --match-source-len and --constraints watch for another "
    "symbol: lengths differ, and translations end without their constraints",
)
def searches_have_the_end_of_the_task(module: PatchedModule) -> None:
    """Give the search the end symbol of the generator."""

    def take_end(self: Any, *args: Any, **kwargs: Any) -> None:
        self.search.eos = self.eos

    call_after(module.SequenceGenerator, "__init__", take_end)


@patch(
    "fairseq.search",
    because="fairseq 0.12.2: with prefix_allowed_tokens_fn in Python, a hypothesis that has ended "
    "goes on behind its </s>, and takes places of the n-best list again",
)
def ended_prefixes_do_not_go_on(module: PatchedModule) -> None:
    """Leave ended hypotheses out of the candidates."""
    search = module.PrefixConstrainedBeamSearch

    def leave_out_ended(
        self: Any,
        step: int,
        lprobs: Tensor,
        scores: Tensor,
        prev_output_tokens: Tensor,
        original_batch_idxs: Tensor,
    ) -> None:
        """lprobs: (B, K, V), changed in place; prev_output_tokens: (B * K, T)."""
        if step > 0:  # all begin with the same symbol
            ended = prev_output_tokens[:, -1].eq(self.eos).view(lprobs.shape[:2])
            lprobs.masked_fill_(ended.unsqueeze(2), -math.inf)

    call_before(search, "step", leave_out_ended)


@patch(
    "fairseq.search",
    because="fairseq 0.12.2: with --diverse-beam-groups, the hypotheses behind one that ends move "
    "up by a place, and with it to another group",
)
def groups_have_their_own_hypotheses(module: PatchedModule) -> None:
    """Order the candidates so that those that go on have the places of their group."""
    import torch

    search = module.DiverseBeamSearch
    step_of = search.step

    @functools.wraps(step_of)
    def step(self: Any, step: int, lprobs: Tensor, *more: Any, **options: Any) -> Any:
        """lprobs: (B, K, V). Candidates (B, C) come by rank, one of each group in turn."""
        beam, groups = lprobs.size(1), self.num_groups
        candidates = step_of(self, step, lprobs, *more, **options)
        words = candidates[1]
        is_end = words.eq(self.eos)
        rank = torch.arange(words.size(1), device=words.device).expand_as(words)
        # of its group's candidates that go on, the how-manieth (from 0)
        of_groups = is_end.view(words.size(0), -1, groups)
        place = (~of_groups).cumsum(1).view_as(words) - 1
        # first the ends among the best of a group, which fairseq stores; then, group by group in
        # turn, what goes on; last the ends of lower rank
        width = words.size(1)
        going_on = width + place * groups + rank % groups
        key = torch.where(is_end, torch.where(rank < beam, rank, rank + 3 * width), going_on)
        order = key.argsort(dim=1)
        return tuple(values.gather(1, order) for values in candidates)

    search.step = step


@patch(
    "fairseq.search",
    because="fairseq 0.12.2: with --constraints and --min-len 0, the empty translation, which has "
    "none of them, takes a place of the n-best list",
)
def empty_translations_lack_constraints(module: PatchedModule) -> None:
    """Rule the end symbol out at the first step, as fairseq does at all others."""

    def rule_out_ends(self: Any, step: int, lprobs: Tensor, *more: Any, **options: Any) -> None:
        """lprobs: (B, K, V), changed in place."""
        if step > 0 or not self.constraint_states:
            return
        for row, states in zip(lprobs, self.constraint_states):
            ends = row[:, self.eos].clone()  # (K,)
            if not states[0].finished:
                row[:, self.eos] = -math.inf
            if row.eq(-math.inf).all():  # a translation may have no words
                row[:, self.eos] = ends

    call_before(module.LexicallyConstrainedBeamSearch, "step", rule_out_ends)


@patch(
    "fairseq.search",
    because="fairseq 0.12.2: where no hypothesis of a sentence has all --constraints at its "
    "greatest length, the search ends in an AssertionError",
)
def translations_without_constraints_are_named(module: PatchedModule) -> None:
    """End those that have the most constraints, with a warning if they lack some."""
    import torch

    search = module.LexicallyConstrainedBeamSearch
    step_of = search.step

    @functools.wraps(step_of)
    def step(
        self: Any, step: int, lprobs: Tensor, scores: Tensor, *more: Any, **options: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        """lprobs: (B, K, V), changed in place; scores: (B, K, step). Candidates (B, 2 K)."""
        # at its greatest length, a sentence has the end symbol alone
        words = lprobs.clone()
        words[:, :, self.eos] = -math.inf
        is_over = words.eq(-math.inf).flatten(1).all(dim=1)  # (B,)
        if not self.constraint_states or not is_over.any():
            return step_of(self, step, lprobs, scores, *more, **options)
        ends = lprobs[:, :, self.eos].clone()  # (B, K)
        if step == 0:
            ends[:, 1:] = -math.inf  # all begin alike
        else:
            ends += scores[:, :, step - 1]
        for row, states, over in zip(ends, self.constraint_states, is_over.tolist()):
            if over:
                _leave_most_constraints(row, states, step)
        ends, rows = ends.sort(dim=1, descending=True)
        all_scores, all_words, all_rows = step_of(self, step, lprobs, scores, *more, **options)
        all_scores[is_over], all_words[is_over], all_rows[is_over] = -math.inf, self.eos, 0
        beam = ends.size(1)
        all_scores[:, :beam] = torch.where(is_over[:, None], ends, all_scores[:, :beam])
        all_rows[:, :beam] = torch.where(is_over[:, None], rows, all_rows[:, :beam])
        return all_scores, all_words, all_rows

    search.step = step


def _leave_most_constraints(ends: Tensor, states: Any, words: int) -> None:
    """Set the scores ``ends`` (K,) of hypotheses with fewer constraints to -inf, in place.

    states: of the K hypotheses. words: their number of words.
    """
    done = ends.new_tensor([state.num_completed for state in states])  # (K,)
    is_alive = ends.gt(-math.inf)
    ends.masked_fill_(done < done.masked_fill(~is_alive, -1).max(), -math.inf)
    if not any(state.finished for state, alive in zip(states, is_alive) if alive):
        logger.warning(
            f"--constraints: no hypothesis of {words} words has all of them, and the "
            "translation lacks some; a larger --max-len-b or --beam leaves more room"
        )
