"""--constraints: what a hypothesis has generated of its constraints."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, List, Tuple

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.token_generation_constraints import (
        OrderedConstraintState,
        UnorderedConstraintState,
    )
    from torch import Tensor

Chosen = Tuple["Tensor", "Tensor", "Tensor", List[Any]]  # scores, words, rows, states


class PossibleWords:
    """The state of a hypothesis that goes on with words of some probability alone.

    Args:
        state: of its constraints.
        possible: the tokens that go on with a constraint and are not ruled out.
    """

    def __init__(self, state: Any, possible: set[int]):
        self.state, self.possible = state, possible
        self.tokens, self.advance = state.tokens, state.advance

    def next_tokens(self) -> set[int]:
        """Return the tokens that go on with a constraint and are not ruled out."""
        return self.possible


@patch(
    "fairseq.token_generation_constraints",
    because="fairseq 0.12.2: with --constraints, a hypothesis that breaks a constraint of several "
    "tokens off loses those before it as well, and has to generate all of them once more",
)
def finished_constraints_remain(module: PatchedModule) -> None:
    """Go back to the end of the last constraint that is finished, in their order."""
    state_class = module.OrderedConstraintState

    def advance(self: OrderedConstraintState, token: int) -> OrderedConstraintState:
        """Return the state behind one more token."""
        tokens = self.sequence.sequences
        first = _beginning(self)
        if self.finished or (token != tokens[self.state + 1] and first == self.state + 1):
            return self.copy()  # anything may stand between constraints, and behind them
        # the longest beginning of the constraint that the hypothesis ends with now
        generated = [*tokens[first : self.state + 1], int(token)]
        while generated and generated != tokens[first : first + len(generated)]:
            del generated[0]
        state: OrderedConstraintState = state_class(self.sequence, first + len(generated) - 1)
        return state

    def next_tokens(self: OrderedConstraintState) -> set[int]:
        """Return the tokens that go on with the constraint or begin it again."""
        if self.finished:
            return set()
        return {int(self.sequence[place]) for place in (self.state + 1, _beginning(self))}

    state_class.advance, state_class.next_tokens = advance, next_tokens


@patch(
    "fairseq.token_generation_constraints",
    because="fairseq 0.12.2: with --constraints unordered, the tokens of a constraint that is "
    "broken off do not count for another beginning: of 'a b', 'a a b' has nothing, and of 'a a b', "
    "'a a a b'",
)
def broken_constraints_begin_again(module: PatchedModule) -> None:
    """Read the tokens again that no constraint has, from the second one on."""
    state_class = module.UnorderedConstraintState

    def advance(self: UnorderedConstraintState, token: int) -> UnorderedConstraintState:
        """Return the state behind one more token."""
        state, ahead = state_class(self.root, copy_from=self), [int(token)]
        state.node = self.node  # which is counted already
        while ahead:
            child = state.node[ahead[0]]
            if child is not None and state.generated[child] < child.num_constraints:
                state = state_class(child, copy_from=state)
            elif state.node != state.root:
                ahead = [*_give_up(state), *ahead]
                continue
            del ahead[0]
        return state

    state_class.advance = advance


@patch(
    "fairseq.search",
    because="fairseq 0.12.2: with --constraints and --no-repeat-ngram-size, words that are ruled "
    "out count as constraints: hypotheses with them take the places of those that are possible, "
    "down to an AssertionError where none is left",
)
def ruled_out_words_are_no_candidates(module: PatchedModule) -> None:
    """Choose among the candidates that have a probability."""
    import torch

    search = module.LexicallyConstrainedBeamSearch
    step_of = search.step_sentence

    def step_sentence(
        self: Any,
        step: int,
        sentno: int,
        lprobs: Tensor,
        constraint_states: list[Any],
        beams_buf: Tensor,
        indices_buf: Tensor,
        scores_buf: Tensor,
    ) -> Chosen:
        """lprobs: (K, V). Rows, words and scores of candidates: (C,); the best are returned."""
        candidates = beams_buf, indices_buf, scores_buf
        tokens = [list(state.next_tokens()) for state in constraint_states[: len(lprobs)]]
        hypotheses = [row for row, of_state in enumerate(tokens) for _ in of_state]
        log_p = lprobs[hypotheses, list(itertools.chain.from_iterable(tokens))]  # (N,)
        # one transfer for the candidates and for all tokens that go on with a constraint
        is_possible = torch.cat((scores_buf, log_p)).gt(-math.inf).tolist()  # [C + N]
        is_candidate = is_possible[: len(scores_buf)]
        if all(is_possible) or not any(is_candidate):
            chosen: Chosen = step_of(self, step, sentno, lprobs, constraint_states, *candidates)
            return chosen
        going_on = iter(is_possible[len(scores_buf) :])
        possible = [
            PossibleWords(state, {token for token in of_state if next(going_on)})
            for state, of_state in zip(constraint_states, tokens)
        ]
        alive = scores_buf.gt(-math.inf)  # (C,)
        # fairseq needs a second candidate: one that is not possible, as padding never is
        more = (0, self.pad, -math.inf)
        values = [torch.cat((v[alive], v.new_tensor([m]))) for v, m in zip(candidates, more)]
        size, self.num_cands = self.num_cands, self.num_cands + 1
        scores, words, rows, states = step_of(self, step, sentno, lprobs, possible, *values)
        self.num_cands = size
        places = scores.gt(-math.inf).nonzero().flatten()[:size]
        missing = (0, size - len(places))
        pad = torch.nn.functional.pad
        return (
            pad(scores[places], missing, value=-math.inf),
            pad(words[places], missing, value=self.unk),
            pad(rows[places], missing),
            [states[place] for place in places.tolist()] + missing[1] * [constraint_states[0]],
        )

    search.step_sentence = step_sentence


def _give_up(state: UnorderedConstraintState) -> list[int]:
    """Go back to the root, in place; return the tokens that may begin another constraint.

    They are those behind the longest constraint that the tokens so far begin with, or without such
    a constraint those behind the first.
    """
    behind: list[int] = []
    while state.node != state.root:
        node = state.node
        if node.terminal and state.completed[node] < node.terminal:
            state.completed[node] += 1
            state.node = state.root
            return behind
        state.generated[node] -= 1
        behind.insert(0, node.token)
        state.node = node.parent
    return behind[1:]


def _beginning(state: OrderedConstraintState) -> int:
    """Return the place of the first token of the constraint that is generated next."""
    ends = [number for number in range(state.state + 1) if state.sequence.endpoints[number]]
    return ends[-1] + 1 if ends else 0
