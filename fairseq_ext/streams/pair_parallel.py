"""Every worker trains pairs of its own (--pair-parallel; Firat et al. 2016, Sec. 5.4).

Only parameters that pairs of several workers use are put together, by those workers. The result is
that of one worker whose updates take a batch of each worker's pair. A worker has neither gradients
nor optimiser states of parameters that its pairs do not use; before validation and before a
checkpoint is written, their owners send them.
"""

import contextlib
import logging
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import torch
import torch.distributed as dist
from torch import nn
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

from .assignment import Assignment
from .distributed import buckets, is_torch_ddp

logger = logging.getLogger(__name__)

BACKENDS = ("pytorch_ddp", "c10d", "legacy_ddp", "no_c10d")
SCHEDULES = ("cycle", "temperature")


def check_pair_parallel(cfg, pairs: Sequence[str], workers: int) -> None:
    """Raise ValueError, naming the options, for what --pair-parallel does not go together with."""
    if str(cfg.schedule) not in SCHEDULES:
        raise ValueError(
            f"--pair-parallel with --schedule {cfg.schedule}: must be one of {', '.join(SCHEDULES)}"
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
    for option, given in refused.items():
        if given:
            raise ValueError(f"--pair-parallel does not go together with {option}")


def pair_sizes(model: nn.Module, pairs: Sequence[str]) -> Dict[str, Dict[str, int]]:
    """{pair: {name of a parameter that it uses: elements}}, as the model's pair_parameters say."""
    if not hasattr(model, "pair_parameters"):
        raise ValueError(
            f"--pair-parallel: {type(model).__name__} does not say which parameters a pair uses; "
            "only a model with pair_parameters(pair) can be divided among workers"
        )
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    return {pair: {name: sizes[name] for name in model.pair_parameters(pair)} for pair in pairs}


def log_assignment(assignment: Assignment, loads: Mapping[str, int], uses) -> None:
    """Log the pairs of each worker and how much of the model they use together."""
    users: Dict[str, set] = {}
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
    while hasattr(model, "module"):
        model = model.module
    return model


class OwnPairs:
    """One worker's part: which parameters it has, and all it exchanges with the others.

    It takes the place of the data-parallel reduction of ``model`` and of ``optimizer``'s clipping,
    and is asked by the trainer to complete the state before a checkpoint is written.

    Args:
        model: as the trainer wraps it. optimizer: fairseq's.
        assignment: the pairs of each worker. uses: {pair: names of parameters}.
    """

    def __init__(self, model, optimizer, assignment: Assignment, uses: Mapping[str, Sequence[str]]):
        self.rank, self.workers = dist.get_rank(), dist.get_world_size()
        self.optimizer = optimizer
        held = [{name for pair in pairs for name in uses[pair]} for pairs in assignment]
        self.users: Dict[Tuple[int, ...], List[nn.Parameter]] = {}
        self.numbers: Dict[int, int] = {}
        for number, (name, parameter) in enumerate(_unwrapped(model).named_parameters()):
            ranks = tuple(rank for rank, names in enumerate(held) if name in names)
            if parameter.requires_grad and ranks:
                self.users.setdefault(ranks, []).append(parameter)
                self.numbers[id(parameter)] = number
        self.groups = self._build_groups()
        self._gloo = None if dist.get_backend() == "gloo" else dist.new_group(backend="gloo")
        self._crashed, self._complete = False, False
        model.all_reduce_grads = self.reduce_gradients
        optimizer.clip_grad_norm = self.clip_grad_norm
        optimizer.optimizer.consolidate_state_dict = self.complete
        self._forget_others()

    def _build_groups(self) -> Dict[Tuple[int, ...], Any]:
        """A process group for each set of workers that share something; None = all of them."""
        everybody = tuple(range(self.workers))
        shared = sorted(ranks for ranks in self.users if 1 < len(ranks))
        return {
            ranks: None if ranks == everybody else dist.new_group(list(ranks)) for ranks in shared
        }

    # ---------------------------------------------------------------- in an update

    @contextlib.contextmanager
    def step(self):
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
        touched = torch.tensor(
            [parameter.grad is not None for _, parameter in shared],
            dtype=torch.int32,
            device=shared[0][1].device,
        )
        dist.all_reduce(touched, op=dist.ReduceOp.MAX)
        together: Dict[Tuple[int, ...], List[torch.Tensor]] = {}
        for (ranks, parameter), some in zip(shared, touched.tolist()):
            if some and self.rank in ranks:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                together.setdefault(ranks, []).append(parameter.grad)
        for ranks, gradients in together.items():
            for bucket in buckets(gradients):
                flat = _flatten_dense_tensors(bucket).div_(self.workers)
                dist.all_reduce(flat, group=self.groups[ranks])
                for gradient, mean in zip(bucket, _unflatten_dense_tensors(flat, bucket)):
                    gradient.copy_(mean)

    def clip_grad_norm(self, max_norm, aggregate_norm_fn=None) -> torch.Tensor:
        """Clip by the norm of the whole model's gradient; each worker adds what is its part.

        The gradient of a parameter that n workers share counts 1/n on each of them.
        """
        parts = {id(p): len(ranks) for ranks, found in self.users.items() for p in found}
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
            if len(ranks) == self.workers:
                continue
            for bucket in buckets([parameter.data for parameter in parameters]):
                flat = _flatten_dense_tensors(bucket)
                dist.broadcast(flat, src=ranks[0])
                for value, sent in zip(bucket, _unflatten_dense_tensors(flat, bucket)):
                    value.copy_(sent)

    def complete(self) -> None:
        """Give worker 0, which writes checkpoints, all parameters and all optimiser states.

        After a failure in this worker's own batch nothing is exchanged: the others are elsewhere,
        and crash.pt holds what this worker has.
        """
        if self._crashed:
            return
        self.send_parameters()
        states = self.optimizer.optimizer.state
        own = {
            self.numbers[id(parameter)]: _on_cpu(states[parameter])
            for ranks, parameters in self.users.items()
            if ranks[0] == self.rank != 0
            for parameter in parameters
            if parameter in states
        }
        received: Optional[list] = [None] * self.workers if self.rank == 0 else None
        dist.gather_object(own, received, dst=0, group=self._gloo)
        by_number = {
            self.numbers[id(parameter)]: parameter
            for parameters in self.users.values()
            for parameter in parameters
        }
        for sent in received or []:
            for number, state in sent.items():
                states[by_number[number]] = state
        self._complete = True


def _on_cpu(state: Dict[str, Any]) -> Dict[str, Any]:
    return {name: value.cpu() if torch.is_tensor(value) else value for name, value in state.items()}


class PairParallel:
    """The part of ``StreamsTask`` that runs --pair-parallel.

    ``assignment`` are the pairs of each worker, None without the option or with one worker: all
    pairs are then that worker's own, which is the plain run.
    """

    cfg: Any
    assignment: Optional[Assignment] = None
    pair_uses: Mapping[str, Mapping[str, int]] = {}
    own_pairs: Optional[OwnPairs] = None

    def train_step(self, sample, model, criterion, optimizer, update_num, ignore_grad=False):
        step = super().train_step
        if self.assignment is None:
            return step(sample, model, criterion, optimizer, update_num, ignore_grad)
        if self.own_pairs is None or self.own_pairs.optimizer is not optimizer:
            self.own_pairs = OwnPairs(model, optimizer, self.assignment, self.pair_uses)
        unsynchronised = model.no_sync() if is_torch_ddp(model) else contextlib.nullcontext()
        with self.own_pairs.step(), unsynchronised:
            result = step(sample, model, criterion, optimizer, update_num, ignore_grad)
        if ignore_grad:  # no pair of this worker takes part in the update: the batch is a stand-in
            for parameter in model.parameters():
                parameter.grad = None
        self._untouched = []  # nobody fills missing gradients with zeros here
        return result

    def begin_valid_epoch(self, epoch, model):
        super().begin_valid_epoch(epoch, model)
        if self.own_pairs is not None:
            self.own_pairs.send_parameters()
