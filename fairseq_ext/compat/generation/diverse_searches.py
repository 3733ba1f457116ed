"""Diverse searches: what they penalise, and the scores of their hypotheses.

Dimensions: B sentences, K beam, G groups, C candidates, V words.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from torch import Tensor


@patch(
    "fairseq.search",
    because="fairseq 0.12.2: with --diverse-beam-groups, a group avoids words that no group before "
    "it took, and the scores of its hypotheses are not those of the model",
)
def groups_avoid_what_was_taken(module: PatchedModule) -> None:
    """Search as in Vijayakumar et al. (2018), Algorithm 1, with the Hamming diversity.

    At each step, a word costs lambda for each hypothesis of the groups before that took it, where
    lambda is --diverse-beam-strength. The cost acts on the choice of the step alone.
    """
    import torch

    def step(
        self: Any, step: int, lprobs: Tensor, scores: Tensor, *more: Any, **options: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        """lprobs: (B, K, V); scores: (B, K, step). Candidates (B, C), one of each group in turn."""
        beam, groups = lprobs.size(1), self.num_groups
        if beam % groups:
            raise ValueError(f"--beam {beam}: allowed: multiples of --diverse-beam-groups {groups}")
        times = torch.zeros_like(lprobs[:, 0])  # (B, V): how often a word was taken
        parts = []
        for group in range(groups):
            # fairseq's attribute is - lambda
            penalties = self.diversity_strength * times
            of_group = lprobs[:, group::groups] + penalties.unsqueeze(1)
            before = scores[:, group::groups] if step > 0 else None
            sums, words, rows = self.beam.step(step, of_group, before)
            parts.append((sums - penalties.gather(1, words), words, rows * groups + group))
            times.scatter_add_(1, words, _taken(words.eq(self.eos), beam // groups).type_as(times))
        sums, words, rows = (torch.stack(part, dim=2).flatten(1) for part in zip(*parts))
        return sums, words, rows

    module.DiverseBeamSearch.step = step


def _taken(is_end: Tensor, size: int) -> Tensor:
    """Return which candidates of a group (B, C), the best first, are taken as its hypotheses.

    These are the ends among the best ``size``, and the best ``size`` of those that go on.
    """
    going_on = is_end.logical_not()
    rank = going_on.long().cumsum(dim=1)
    best = going_on & rank.le(size)
    best[:, :size] |= is_end[:, :size]
    return best


@patch(
    "fairseq.search",
    because="fairseq 0.12.2: with --diversity-rate, the scores of hypotheses are not those of the "
    "model: each word costs the rate at least once",
)
def siblings_have_the_scores_of_the_model(module: PatchedModule) -> None:
    """Penalise siblings in the choice of a step, as Li et al. (2016), and not for good."""
    search = module.DiverseSiblingsSearch
    step_of = search.step

    @functools.wraps(step_of)
    def step(
        self: Any, step: int, lprobs: Tensor, scores: Tensor, *more: Any, **options: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        """lprobs: (B, K, V); scores: (B, K, step). Candidates (B, C)."""
        sums = lprobs if step == 0 else lprobs + scores[:, :, step - 1 : step]  # (B, K, V)
        _, words, rows = step_of(self, step, lprobs, scores, *more, **options)
        return sums.flatten(1).gather(1, rows * sums.size(2) + words), words, rows

    search.step = step
