"""Every worker trains pairs of its own (--pair-parallel; Firat et al. 2016, Sec. 5.4).

Only parameters that pairs of several workers use are put together, by those workers. The result is
that of one worker whose updates take a batch of each worker's pair. A worker has neither gradients
nor optimiser states of parameters that its pairs do not use; before validation and before a
checkpoint is written, their owners send them.
"""

import contextlib
import logging
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
    cast,
)

import torch
import torch.distributed as dist
from fairseq.criterions import FairseqCriterion
from fairseq.optim import FairseqOptimizer
from fairseq.tasks.translation import TranslationTask
from torch import Tensor, nn

from .assignment import Assignment
from .config import StreamsConfig
from .distributed import all_reduce_mean, broadcast, is_torch_ddp
from .model import HasPairParameters
from .steps import StepOutput

logger = logging.getLogger(__name__)

BACKENDS = ("pytorch_ddp", "c10d", "legacy_ddp", "no_c10d")
SCHEDULES = ("cycle", "temperature")
# {pair: {name of a parameter that it uses: elements}}
PairSizes = Mapping[str, Mapping[str, int]]
# the numbers of the workers that use a parameter
Ranks = Tuple[int, ...]


def check_pair_parallel(
    cfg: StreamsConfig, pairs: Sequence[str], workers: int, schedule: str
) -> None:
    """Raise ValueError, naming the options, for what --pair-parallel does not go together with."""
    if schedule not in SCHEDULES:
        raise ValueError(
            f"--pair-parallel with --schedule {schedule}: must be one of {', '.join(SCHEDULES)}"
        )
    if len(pairs) < workers:
        raise ValueError(
            f"--pair-parallel with {workers} workers: there are only {len(pairs)} pairs "
            f"({', '.join(pairs)}) and each worker needs one of its own"
        )
    if str(cfg.ddp_backend) not in BACKENDS:
        raise ValueError(
            f"--pair-parallel with --ddp-backend {cfg.ddp_backend}: must be one of "
            + ", ".join(BACKENDS)
        )
    refused = {
        "--fp16": cfg.fp16,
        "--bf16": cfg.bf16,
        "--amp": cfg.amp,
        "--store-ema": cfg.store_ema,
        "--use-bmuf": cfg.use_bmuf,
        "--zero-sharding os": str(cfg.zero_sharding) != "none",
        "--no-save-optimizer-state": cfg.no_save_optimizer_state,
    }
    for option, is_set in refused.items():
        if is_set:
            raise ValueError(f"--pair-parallel does not go together with {option}")


def pair_sizes(model: nn.Module, pairs: Sequence[str]) -> PairSizes:
    """Return the parameters that each pair uses, as the model's ``pair_parameters`` say.

    Raises ValueError for a model without them.
    """
    if not isinstance(model, HasPairParameters):
        raise ValueError(
            f"--pair-parallel: {type(model).__name__} does not say which parameters a pair uses; "
            "only a model with pair_parameters(pair) can be divided among workers"
        )
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    return {pair: {name: sizes[name] for name in model.pair_parameters(pair)} for pair in pairs}


def log_assignment(assignment: Assignment, loads: Mapping[str, int], uses: PairSizes) -> None:
    """Log the pairs of each worker and how much of the model they use together.

    Args:
        assignment: the pairs of each worker.
        loads: {pair: its batches}.
        uses: the parameters of each pair.
    """
    users: Dict[str, Set[int]] = {}
    for worker, pairs in enumerate(assignment):
        batches = sum(loads[pair] for pair in pairs)
        logger.info(
            f"--pair-parallel: worker {worker} trains {', '.join(pairs)} ({batches} batches)"
        )
        for name in {name for pair in pairs for name in uses[pair]}:
            users.setdefault(name, set()).add(worker)
    sizes = {name: size for names in uses.values() for name, size in names.items()}
    shared = sum(sizes[name] for name, workers in users.items() if len(workers) > 1)
    logger.info(f"--pair-parallel: workers share {shared} of {sum(sizes.values())} parameters")


def _unwrapped(model: nn.Module) -> nn.Module:
    """Return the model inside of the wrappers of data-parallel training."""
    while isinstance(getattr(model, "module", None), nn.Module):
        model = cast(nn.Module, model.module)
    return model


class OwnPairs:
    """One worker's part: which parameters it has, and all it exchanges with the others.

    It takes the place of the data-parallel reduction of ``model`` and of ``optimizer``'s clipping,
    and is asked by the trainer to complete the state before a checkpoint is written.

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
        names_of = [{name for pair in pairs for name in uses[pair]} for pairs in assignment]
        self.users: Dict[Ranks, List[nn.Parameter]] = {}
        # parameters are sent between workers by their number in the model
        self.numbers: Dict[int, int] = {}
        for number, (name, parameter) in enumerate(_unwrapped(model).named_parameters()):
            ranks = tuple(rank for rank, names in enumerate(names_of) if name in names)
            if parameter.requires_grad and ranks:
                self.users.setdefault(ranks, []).append(parameter)
                self.numbers[id(parameter)] = number
        self.groups = self._build_groups()
        # pickled objects are gathered through the CPU
        self._gloo = None if dist.get_backend() == "gloo" else dist.new_group(backend="gloo")
        self._crashed, self._complete = False, False
        model.all_reduce_grads = self.reduce_gradients
        optimizer.clip_grad_norm = self.clip_grad_norm
        optimizer.optimizer.consolidate_state_dict = self.complete
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
        """Around the forward and backward passes of an update."""
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
        for parameter in self.users.get((self.rank,), []):
            if parameter.grad is not None:
                parameter.grad.div_(self.workers)
        shared = [(ranks, p) for ranks in self.groups for p in self.users[ranks]]
        if not shared:
            return
        # another worker's batch may have touched what this worker's has not
        touched = torch.tensor(
            [parameter.grad is not None for _, parameter in shared],
            dtype=torch.int32,
            device=shared[0][1].device,
        )
        dist.all_reduce(touched, op=dist.ReduceOp.MAX)
        together: Dict[Ranks, List[Tensor]] = {}
        for (ranks, parameter), is_touched in zip(shared, touched.tolist()):
            if is_touched and self.rank in ranks:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                together.setdefault(ranks, []).append(parameter.grad)
        for ranks, gradients in together.items():
            all_reduce_mean(gradients, self.workers, self.groups[ranks])

    def clip_grad_norm(
        self, max_norm: float, aggregate_norm_fn: Optional[Callable[[Tensor], Tensor]] = None
    ) -> Tensor:
        """Clip by the norm of the whole model's gradient; each worker adds what is its part.

        The gradient of a parameter that n workers share counts 1/n on each of them.
        """
        parts = {id(p): len(ranks) for ranks, listed in self.users.items() for p in listed}
        parameters = [p for p in self.optimizer.params if p.grad is not None]
        device = next(iter(self.optimizer.params)).device
        total = torch.zeros((), dtype=torch.float64, device=device)
        for parameter in parameters:
            square = torch.norm(parameter.grad.detach(), dtype=torch.float32).double() ** 2
            total += square / parts.get(id(parameter), self.workers)
        dist.all_reduce(total)
        norm = total.sqrt().float()
        if max_norm > 0:
            factor = (float(max_norm) / (norm + 1e-6)).clamp_(max=1)
            for parameter in parameters:
                parameter.grad.detach().mul_(factor)
        return norm

    # ---------------------------------------------------------------- between updates

    def send_parameters(self) -> None:
        """Give every worker the present values of all parameters."""
        for ranks, parameters in sorted(self.users.items()):
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
        dist.gather_object(states_to_send, received, dst=0, group=self._gloo)
        by_number = {
            self.numbers[id(parameter)]: parameter
            for parameters in self.users.values()
            for parameter in parameters
        }
        for sent in received or []:
            for number, state in sent.items():
                states[by_number[number]] = state
        self._complete = True


def _on_cpu(state: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the state of one parameter with its tensors in host memory."""
    return {name: value.cpu() if torch.is_tensor(value) else value for name, value in state.items()}


class PairParallel(TranslationTask):
    """The part of ``StreamsTask`` that runs --pair-parallel.

    ``assignment`` are the pairs of each worker, None without the option or with one worker: all
    pairs are then that worker's own, which is the plain run.
    """

    cfg: StreamsConfig
    assignment: Optional[Assignment] = None
    pair_uses: PairSizes = {}
    own_pairs: Optional[OwnPairs] = None
    _untouched: List[nn.Parameter]

    def train_step(
        self,
        sample: Mapping[str, Any],
        model: Any,
        criterion: FairseqCriterion,
        optimizer: FairseqOptimizer,
        update_num: int,
        ignore_grad: bool = False,
    ) -> StepOutput:
        """Run a step of ``Steps``; workers exchange nothing before all have run theirs."""
        step = super().train_step
        if self.assignment is None:
            return step(sample, model, criterion, optimizer, update_num, ignore_grad)
        if self.own_pairs is None or self.own_pairs.optimizer is not optimizer:
            self.own_pairs = OwnPairs(model, optimizer, self.assignment, self.pair_uses)
        unsynchronised = model.no_sync() if is_torch_ddp(model) else contextlib.nullcontext()
        with self.own_pairs.step(), unsynchronised:
            result = step(sample, model, criterion, optimizer, update_num, ignore_grad)
        # no pair of this worker takes part in the update: its batch is a stand-in
        if ignore_grad:
            for parameter in model.parameters():
                parameter.grad = None
        # nobody fills missing gradients with zeros here
        self._untouched = []
        return result

    def begin_valid_epoch(self, epoch: int, model: nn.Module) -> None:
        """Give every worker all parameters, which validation needs."""
        super().begin_valid_epoch(epoch, model)
        if self.own_pairs is not None:
            self.own_pairs.send_parameters()
