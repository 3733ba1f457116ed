"""What workers with pairs of their own exchange (--pair-parallel).

Only parameters that pairs of several workers use are put together, by those workers. A worker has
neither gradients nor optimiser states of parameters that its pairs do not use.
"""

import contextlib
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

import torch
import torch.distributed as dist
from torch import Tensor, nn

from .assignment import Assignment
from .distributed import all_reduce_mean, broadcast, touched_by_any, unwrapped

# the numbers of the workers that use a parameter
Ranks = Tuple[int, ...]


class PairReducer:
    """One worker's part: which parameters it has, and all it exchanges with the others.

    The trainer calls it in the place of the data-parallel reduction and of the optimiser's
    clipping, and before a checkpoint is written (``compat/training/training_hooks.py: Reducer``).

    Args:
        model: as the trainer wraps it.
        optimizer: fairseq's.
        assignment: the pairs of each worker.
        uses: {pair: names of the parameters that it uses}.
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        assignment: Assignment,
        uses: Mapping[str, Iterable[str]],
    ):
        self.rank, self.workers = dist.get_rank(), dist.get_world_size()
        self.optimizer = optimizer
        # parameters by worker
        names_of = [{name for pair in pairs for name in uses[pair]} for pairs in assignment]
        self.users: Dict[Ranks, List[nn.Parameter]] = {}
        # parameters are sent between workers by their number in the model
        self.numbers: Dict[int, int] = {}
        for number, (name, parameter) in enumerate(unwrapped(model).named_parameters()):
            # () if no pair uses it
            ranks = tuple(rank for rank, names in enumerate(names_of) if name in names)
            if parameter.requires_grad and ranks:
                self.users.setdefault(ranks, []).append(parameter)
                self.numbers[id(parameter)] = number
        self.groups = self._build_groups()
        # pickled objects are gathered through the CPU
        self._gloo = None if dist.get_backend() == "gloo" else dist.new_group(backend="gloo")
        # _complete: a checkpoint has just been written, and worker
        # 0 holds the states of all parameters
        self._crashed, self._complete = False, False
        self._forget_others()

    def _build_groups(self) -> Dict[Ranks, Optional[dist.ProcessGroup]]:
        """Return a process group for each set of workers that share something; None = all."""
        everybody = tuple(range(self.workers))
        # every worker must create all groups, in the same order, those of others too
        shared = sorted(ranks for ranks in self.users if 1 < len(ranks))
        return {
            ranks: None if ranks == everybody else dist.new_group(list(ranks)) for ranks in shared
        }

    # ---------------------------------------------------------------- in an update

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Surround the forward and backward passes of an update."""
        if self._complete:
            self._forget_others()
        try:
            yield
        except Exception as error:
            self._crashed = "out of memory" not in str(error)  # from that the trainer recovers
            raise

    def _forget_others(self) -> None:
        """Drop gradients and optimiser states of what this worker's pairs do not use."""
        states = self.optimizer.optimizer.state
        for ranks, parameters in self.users.items():
            if self.rank not in ranks:
                for parameter in parameters:
                    parameter.grad = None
                    states.pop(parameter, None)
        self._complete = False

    def reduce_gradients(self) -> None:
        """Divide gradients by the number of all workers, after adding up those that are shared.

        A shared parameter that no worker's batch has touched keeps no gradient.
        """
        # Parameters of this worker alone need no message, but the same divisor: the trainer
        # multiplies all gradients by the number of workers over the sum of their sample sizes.
        for parameter in self.users.get((self.rank,), []):
            if parameter.grad is not None:
                parameter.grad.div_(self.workers)
        # self.groups is the same on all workers, in the same order: either all of them return here
        # or all take part in the exchange, and those that meet in two groups meet in the same order
        shared = [(ranks, p) for ranks in self.groups for p in self.users[ranks]]
        if not shared:
            return
        parameters = [parameter for _, parameter in shared]
        is_here = [parameter.grad is not None for parameter in parameters]
        # another worker's batch may have touched what this worker's has not
        touched = touched_by_any(parameters, is_here, None)
        together: Dict[Ranks, List[Tensor]] = {}
        for (ranks, parameter), is_touched in zip(shared, touched):
            if is_touched and self.rank in ranks:
                if parameter.grad is None:
                    # every user brings the same tensors to the sum
                    parameter.grad = torch.zeros_like(parameter)
                together.setdefault(ranks, []).append(parameter.grad)
        for ranks, gradients in together.items():
            all_reduce_mean(gradients, self.workers, self.groups[ranks])

    def clip_grad_norm(self, max_norm: float) -> Tensor:
        """Clip by the norm of the whole model's gradient, and return that norm, a scalar.

        Each worker adds its part.

        The gradient of a parameter that n workers share counts 1/n on each of them.
        """
        # {parameter: workers that have its gradient}
        parts = {id(p): len(ranks) for ranks, listed in self.users.items() for p in listed}
        parameters = [p for p in self.optimizer.params if p.grad is not None]
        device = next(iter(self.optimizer.params)).device
        total = torch.zeros((), dtype=torch.float64, device=device)
        for parameter in parameters:
            # each norm in float32, as fairseq computes it; the sum over many parameters in float64
            square = torch.norm(parameter.grad.detach(), p=2, dtype=torch.float32).double() ** 2
            total += square / parts.get(id(parameter), self.workers)
        dist.all_reduce(total)
        norm = total.sqrt().float()
        if max_norm > 0:
            # 1e-6 as in fairseq's own clipping
            factor = (float(max_norm) / (norm + 1e-6)).clamp_(max=1)
            for parameter in parameters:
                parameter.grad.detach().mul_(factor)
        return norm

    # ---------------------------------------------------------------- between updates

    def send_parameters(self) -> None:
        """Give every worker the present values of all parameters."""
        for ranks, parameters in sorted(self.users.items()):  # every worker in this order
            # what all workers use is the same on all of them
            if len(ranks) < self.workers:
                broadcast([parameter.data for parameter in parameters], source=ranks[0])

    def complete(self) -> None:
        """Give worker 0, which writes checkpoints, all parameters and all optimiser states.

        After a failure in this worker's own batch nothing is exchanged: the others are elsewhere,
        and crash.pt holds what this worker has.
        """
        if self._crashed:
            return
        self.send_parameters()
        states = self.optimizer.optimizer.state
        # of several users the first sends
        states_to_send = {
            self.numbers[id(parameter)]: _on_cpu(states[parameter])
            for ranks, parameters in self.users.items()
            if ranks[0] == self.rank != 0
            for parameter in parameters
            if parameter in states
        }
        received: Optional[List[Any]] = [None] * self.workers if self.rank == 0 else None
        # a collective call: all workers get here, also those that have nothing to send
        dist.gather_object(states_to_send, received, dst=0, group=self._gloo)
        by_number = {
            self.numbers[id(parameter)]: parameter
            for parameters in self.users.values()
            for parameter in parameters
        }
        for sent in received or []:
            for number, state in sent.items():
                states[by_number[number]] = state  # until the next update: ``_forget_others``
        self._complete = True


def _on_cpu(state: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the state of one parameter with its tensors in host memory."""
    return {name: value.cpu() if torch.is_tensor(value) else value for name, value in state.items()}
