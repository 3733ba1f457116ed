"""--constraints: what a hypothesis has generated of its constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.token_generation_constraints import (
        OrderedConstraintState,
        UnorderedConstraintState,
    )


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
