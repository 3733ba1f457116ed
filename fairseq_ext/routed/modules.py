"""Recurrent units with shared blocks, a block per task and a router, in plain torch.

Zaremoodi, Buntine and Haffari (ACL 2018), Sec. 2.1 and 2.2, for one step. The paper does not number
its equations; the numbers are those of the card (README.md)::

    s   = tanh(W_x x_t + W_h h_{t-1} + b_s)                       Eq. 1, router
    tau = softmax(W_tau s + b_tau)                                Eq. 2, one weight per shared block
    x~  = tau[i] x_t for shared block i;  x_t for the task's      Eq. 3
    z = sigmoid(W_z x~ + U_z g_{t-1} + b_z)                       Eq. 4, block; g is its own state
    r = sigmoid(W_r x~ + U_r g_{t-1} + b_r)                       Eq. 5
    c = tanh(W_c x~ + U_c (r * g_{t-1}) + b_c)                    Eq. 6
    g_t = z * g_{t-1} + (1 - z) * c                               Eq. 7
    h_t = [sum_i tau[i] g^(i)_t ; g^(task)_t]                     Eq. 8, state of the unit

The router and the shared blocks belong to all tasks.

Deviation from Eq. 6: the paper prints c = tanh(W_c x~ + U_c g_{t-1} + b_c), without the reset gate
r that it defines. Cho's unit, which it cites, is meant.

Without shared blocks (``shared_blocks=0``) there is no router and the unit is a GRU of Cho's kind,
h_t = g_t: the layers of the baselines.

Dimensions: B sentences, S positions, I input, H units of a block, n shared blocks, K = n + 1
blocks, R units of the router, O = 2H (n = 0: H) state of the unit, G = R + 3HK projections of the
input. Gates stand side by side in the order z, r, c. Masks are bool, True = padding.
"""

from typing import Any, List, Mapping, Optional, Sequence, Tuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..common import products
from ..common.dropout import RetainsDropout
from ..common.layers import linear
from ..common.padding import reorder, reversal
from .routed_gru import Recurrence, routed_gru

COMMON = "common"  # the name of a block that is no task's own
State = Tuple[Tensor, Tensor]  # of the blocks g (K, B, H), of the unit h (B, O)


class Router(nn.Module):
    """tau = softmax(W_tau tanh(W_x x_t + W_h h_{t-1} + b_s) + b_tau) (Eq. 1 and 2).

    Args:
        input_size: I.
        state_size: O; the router sees the shared and the task's half of the state.
        shared_blocks: n.
        router_size: R, which the paper leaves open.
    """

    def __init__(self, input_size: int, state_size: int, shared_blocks: int, router_size: int):
        super().__init__()
        self.input = linear(input_size, router_size)  # W_x, b_s
        self.state = linear(state_size, router_size, bias=False)  # W_h
        self.output = linear(router_size, shared_blocks)  # W_tau, b_tau

    def forward(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Return tau (B, n) of x_t (B, I) and h_{t-1} (B, O)."""
        hidden = torch.tanh(self.input(inputs) + self.state(state))  # s_t (B, R)
        return self.output(hidden).softmax(dim=1)


class Blocks(nn.Module):
    """GRU blocks side by side (Eq. 4 to 7).

    Args:
        count: how many.
        input_size: I.
        hidden_size: H.
    """

    def __init__(self, count: int, input_size: int, hidden_size: int):
        super().__init__()
        self.weight_input = nn.Parameter(torch.empty(count, 3 * hidden_size, input_size))  # W
        self.weight_state = nn.Parameter(torch.empty(count, 3 * hidden_size, hidden_size))  # U
        self.bias = nn.Parameter(torch.zeros(count, 3 * hidden_size))  # b
        # gate by gate: W of a block is three matrices, not one with 3H outputs
        for block in range(count):
            for gate in self.weight_input.data[block].chunk(3):
                nn.init.xavier_uniform_(gate)
            for gate in self.weight_state.data[block].chunk(3):
                nn.init.orthogonal_(gate)

    def step(self, number: int, inputs: Tensor, before: Tensor) -> Tensor:
        """Return g_t (B, H) of block ``number`` from x~_t (B, I) and g_{t-1} (B, H)."""
        weight_z, weight_r, weight_c = self.weight_input[number].chunk(3)
        state_z, state_r, state_c = self.weight_state[number].chunk(3)
        bias_z, bias_r, bias_c = self.bias[number].chunk(3)
        # Eq. 4
        update = torch.sigmoid(F.linear(inputs, weight_z, bias_z) + F.linear(before, state_z))
        # Eq. 5
        reset = torch.sigmoid(F.linear(inputs, weight_r, bias_r) + F.linear(before, state_r))
        # Eq. 6
        candidate = torch.tanh(
            F.linear(inputs, weight_c, bias_c) + F.linear(reset * before, state_c)
        )
        return update * before + (1 - update) * candidate  # Eq. 7


class RoutedUnit(nn.Module):
    """The recurrent unit (Eq. 8): n shared blocks, one block for each task, and a router.

    It takes the place of one layer of a GRU in one direction.

    Args:
        input_size: I.
        hidden_size: H, units of each block.
        shared_blocks: n; 0 = a plain GRU.
        tasks: their names; None = the block that reads the input directly is no task's own, and
            all tasks share the whole unit.
        router_size: R; by default H.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        shared_blocks: int = 3,
        tasks: Optional[Sequence[str]] = None,
        router_size: Optional[int] = None,
    ):
        super().__init__()
        self.hidden_size, self.shared_blocks = hidden_size, shared_blocks
        self.output_size = hidden_size * (2 if shared_blocks else 1)  # O
        if shared_blocks:
            size = router_size or hidden_size
            self.router = Router(input_size, self.output_size, shared_blocks, size)
            self.shared = Blocks(shared_blocks, input_size, hidden_size)
        # "own" is part of the names of the parameters in checkpoints
        self.own = nn.ModuleDict(
            {name: Blocks(1, input_size, hidden_size) for name in tasks or [COMMON]}
        )

    def task_block(self, task: Optional[str]) -> Blocks:
        """Return the block that reads the input directly: the task's, or that of all tasks."""
        blocks = cast(Mapping[str, Blocks], self.own)
        name = COMMON if COMMON in blocks else task
        if name is None or name not in blocks:
            raise ValueError(f"task {task!r}: the unit has blocks for {', '.join(blocks)}")
        return blocks[name]

    def _stacked(self, name: str, task: Optional[str]) -> Tensor:
        """Return a parameter of all K blocks, (K, ..), the task's last."""
        # the task's block stands last: K - 1 is its number wherever blocks are stacked
        last = getattr(self.task_block(task), name)
        return torch.cat([getattr(self.shared, name), last]) if self.shared_blocks else last

    def start(self, output: Tensor) -> State:
        """Return the state before the first step, from h_0 (B, O).

        Every shared block starts from the first half: h_0 = [sum_i tau[i] g^(i)_0 ; g^(task)_0]
        then holds for every tau.
        """
        halves = output.split(self.hidden_size, dim=1)
        return torch.stack([halves[0]] * self.shared_blocks + [halves[-1]]), output  # (K, B, H)

    def zero_state(self, inputs: Tensor) -> State:
        """Return zeros for a batch of inputs (B, ...)."""
        return self.start(inputs.new_zeros(inputs.size(0), self.output_size))

    def step(
        self, inputs: Tensor, state: State, task: Optional[str] = None
    ) -> Tuple[State, Tensor]:
        """Return the state after one step as in the paper, and tau: the specification.

        Args:
            inputs: x_t (B, I).
            state: before the step.
            task: whose block to use.

        Returns:
            state after the step, tau (B, n) or (B, 0).
        """
        blocks, output = state
        # it reads x_t itself: the router has no say in the task's block
        of_task = self.task_block(task).step(0, inputs, blocks[-1])
        if not self.shared_blocks:
            return (of_task.unsqueeze(0), of_task), inputs.new_zeros(inputs.size(0), 0)
        tau = self.router(inputs, output)  # (B, n)
        # Eq. 3 for the inputs of the shared blocks, then Eq. 4 to 7
        shared = [
            self.shared.step(number, tau[:, number, None] * inputs, blocks[number])
            for number in range(self.shared_blocks)
        ]
        mixed = sum(tau[:, number, None] * block for number, block in enumerate(shared))  # Eq. 8
        output = torch.cat([cast(Tensor, mixed), of_task], dim=1)
        return (torch.stack([*shared, of_task]), output), tau

    def projection(self, task: Optional[str] = None) -> State:
        """Return [W_x ; W of all blocks] (G, I) and [b_s ; zeros] (G,).

        One product with x then serves router and blocks: W (tau x) + b = tau (W x) + b. The blocks'
        biases are added inside the loop, behind the multiplication by tau.
        """
        # weights are at rest during a search: there the stack is made once, not in every step
        return products.compute_once(lambda: self._projection(task), self, "projection", task)

    def _projection(self, task: Optional[str]) -> State:
        blocks = self._stacked("weight_input", task).flatten(0, 1)  # (3HK, I)
        zeros = blocks.new_zeros(blocks.size(0))
        if not self.shared_blocks:
            return blocks, zeros
        router = self.router.input
        return torch.cat([router.weight, blocks]), torch.cat([router.bias, zeros])  # (G, I), (G,)

    def recurrence(self, task: Optional[str] = None) -> Recurrence:
        """Return the weights that stay inside the loop."""
        return products.compute_once(lambda: self._recurrence(task), self, "recurrence", task)

    def _recurrence(self, task: Optional[str]) -> Recurrence:
        blocks = self._stacked("bias", task), self._stacked("weight_state", task)
        if not self.shared_blocks:
            return Recurrence(*blocks)
        router = self.router
        return Recurrence(*blocks, router.state.weight, router.output.weight, router.output.bias)

    def forward(
        self,
        inputs: Tensor,
        task: Optional[str] = None,
        state: Optional[State] = None,
        literal: bool = False,
    ) -> Tuple[Tensor, Tensor]:
        """Return h (B, S, O) and tau (B, S, n) of x (B, S, I).

        task: whose block to use. state: before the first step (default: zeros). literal: step by
        step. Padding has to stand after the real positions.
        """
        state = state or self.zero_state(inputs)
        if literal:
            steps: List[Tuple[Tensor, Tensor]] = []
            for position in range(inputs.size(1)):
                state, tau = self.step(inputs[:, position], state, task)
                steps.append((state[1], tau))
            states, taus = zip(*steps)  # (B, O), (B, n) each
            return torch.stack(states, dim=1), torch.stack(taus, dim=1)
        projected = products.linear(inputs.transpose(0, 1), *self.projection(task))  # (S, B, G)
        outputs, tau, _ = routed_gru(projected, *state, self.recurrence(task))
        return outputs.transpose(0, 1), tau.transpose(0, 1)  # time comes first in the loop


class BidirectionalUnit(nn.Module):
    """A unit that reads forwards and one that reads backwards, side by side.

    The backward one reads each sentence reversed within its own length.

    Args: those of ``RoutedUnit``.
    """

    def __init__(self, *sizes: Any, **options: Any):
        super().__init__()
        self.forwards = RoutedUnit(*sizes, **options)
        self.backwards = RoutedUnit(*sizes, **options)
        self.output_size = 2 * self.forwards.output_size

    def forward(
        self, inputs: Tensor, padding: Tensor, task: Optional[str] = None, literal: bool = False
    ) -> Tuple[Tensor, Tensor, Tensor]:
        """Return h (B, S, 2O) and tau of both ways (B, S, n).

        inputs: x (B, S, I). padding: (B, S), at the end of each row.
        """
        positions = reversal(padding)  # (B, S)
        ahead, tau = self.forwards(inputs, task, literal=literal)
        back, tau_back = self.backwards(reorder(inputs, positions), task, literal=literal)
        outputs = torch.cat([ahead, reorder(back, positions)], dim=2)  # (B, S, 2O)
        # tau of the backward unit goes back to the places of its words
        return outputs, tau, reorder(tau_back, positions)


class UnitStack(RetainsDropout, nn.Module):
    """Bidirectional units one above the other.

    Args:
        units: from the bottom to the top.
        dropout: on the input of every unit but the first.
    """

    def __init__(self, units: Sequence[BidirectionalUnit], dropout: float = 0.0):
        super().__init__()
        self.units = cast(Sequence[BidirectionalUnit], nn.ModuleList(units))
        self.dropout = dropout
        self.output_size = units[-1].output_size

    def forward(
        self, inputs: Tensor, padding: Tensor, task: Optional[str] = None, literal: bool = False
    ) -> Tuple[Tensor, List[Tuple[Tensor, Tensor]]]:
        """Return h (B, S, 2O) of the top unit, and tau of each unit, both ways.

        inputs: x (B, S, I). padding: (B, S), at the end of each row.
        """
        weights: List[Tuple[Tensor, Tensor]] = []
        for number, unit in enumerate(self.units):
            if number:
                inputs = self.drop(inputs)
            inputs, tau, tau_back = unit(inputs, padding, task, literal)
            weights.append((tau, tau_back))
        return inputs, weights
