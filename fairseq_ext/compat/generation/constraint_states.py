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


def _beginning(state: OrderedConstraintState) -> int:
    """Return the place of the first token of the constraint that is generated next."""
    ends = [number for number in range(state.state + 1) if state.sequence.endpoints[number]]
    return ends[-1] + 1 if ends else 0


@patch(
    "fairseq.token_generation_constraints",
    because="fairseq 0.12.2: with --constraints unordered, a token that breaks a constraint off "
    "and begins it again does not count: of 'a b', 'a a b' has nothing",
)
def broken_constraints_begin_again(module: PatchedModule) -> None:
    """Give back what was generated of a constraint before its first token is counted."""
    state_class = module.UnorderedConstraintState

    def advance(self: UnorderedConstraintState, token: int) -> UnorderedConstraintState:
        """Return the state behind one more token."""
        child = self.node[int(token)]
        if child is not None and self.generated[child] < child.num_constraints:
            return state_class(child, copy_from=self)  # type: ignore[no-any-return]
        state: UnorderedConstraintState = state_class(self.root, copy_from=self)
        node = self.node
        while node != self.root:
            if node.terminal and self.completed[node] < node.terminal:
                state.completed[node] += 1
                break
            state.generated[node] -= 1
            node = node.parent
        child = self.root[int(token)]
        if child is not None and state.generated[child] < child.num_constraints:
            return state_class(child, copy_from=state)  # type: ignore[no-any-return]
        return state

    state_class.advance = advance
