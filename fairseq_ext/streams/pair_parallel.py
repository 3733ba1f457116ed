"""Every worker trains pairs of its own (--pair-parallel; Firat et al. 2016, Sec. 5.4).

The result is that of one worker whose updates take a batch of each worker's pair. reducer.py says
what the workers exchange.
"""

import contextlib
import logging
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence, Set

from fairseq.optim import FairseqOptimizer
from fairseq.optim.composite import FairseqCompositeOptimizer
from torch import nn

from .assignment import Assignment, assign_pairs
from .config import StreamsConfig
from .dataset import Batch
from .distributed import is_torch_ddp
from .model import HasPairParameters
from .reducer import PairReducer

logger = logging.getLogger(__name__)

# fairseq has two names each for torch's wrapper and for its own, which reduces once in an update
BACKENDS = ("pytorch_ddp", "c10d", "legacy_ddp", "no_c10d")
PAIR_PARALLEL_SCHEDULES = ("cycle", "temperature")  # one pair to a slot: a worker's own
# {pair: {name of a parameter that it uses: elements}}
PairSizes = Mapping[str, Mapping[str, int]]


def check_pair_parallel(
    cfg: StreamsConfig, pairs: Sequence[str], workers: int, schedule: str
) -> None:
    """Raise ValueError, naming the options, for what --pair-parallel does not go together with."""
    if schedule not in PAIR_PARALLEL_SCHEDULES:
        raise ValueError(
            f"--pair-parallel with --schedule {schedule}: must be one of "
            f"{', '.join(PAIR_PARALLEL_SCHEDULES)}"
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
    users: Dict[str, Set[int]] = {}  # {parameter: its workers}
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


class PairParallel:
    """What a task does for --pair-parallel; with one worker, or without the option, nothing.

    Attributes:
        assignment: the pairs of each worker; None in the plain run.
        sizes: the parameters that each pair uses.
        reducer: what this worker exchanges with the others; None before the first update.
    """

    def __init__(self, cfg: StreamsConfig):
        self.cfg = cfg
        self.assignment: Optional[Assignment] = None
        self.sizes: PairSizes = {}
        self.reducer: Optional[PairReducer] = None

    def assign(
        self, batches: Mapping[str, Sequence[Batch]], workers: int, schedule: str
    ) -> Assignment:
        """Return the pairs of each worker, which are assigned once in a run.

        Args:
            batches: {pair that is trained: its minibatches}.
            workers: how many there are.
            schedule: of the run.
        """
        if self.assignment is None:
            # Later epochs keep the assignment, whatever data they have: a worker has optimiser
            # states of nothing but the parameters of its pairs.
            check_pair_parallel(self.cfg, list(batches), workers, schedule)
            loads = {pair: len(listed) for pair, listed in batches.items()}
            self.assignment = assign_pairs(loads, self.sizes, workers)
            log_assignment(self.assignment, loads, self.sizes)
        return self.assignment

    @contextlib.contextmanager
    def step(
        self,
        model: Any,
        criterion: nn.Module,
        optimizer: FairseqOptimizer,
        is_stand_in: bool = False,
    ) -> Iterator[None]:
        """Around a training step: workers exchange nothing before all have run theirs.

        Args:
            model: as the trainer wraps it.
            criterion: the run's.
            optimizer: the trainer's.
            is_stand_in: True if no pair of this worker takes part in the update.

        Raises ValueError for a criterion with parameters: which pair uses them is not known. Also
        for --optimizer composite, whose states lie in several optimisers.
        """
        if self.assignment is None:
            yield
            return
        if self.reducer_of(optimizer) is None:
            if any(parameter.requires_grad for parameter in criterion.parameters()):
                raise ValueError(
                    "--pair-parallel does not go together with a --criterion that has parameters "
                    "of its own, such as the backward network of twin"
                )
            if isinstance(optimizer, FairseqCompositeOptimizer):
                raise ValueError("--pair-parallel does not go together with --optimizer composite")
            # not earlier: it needs the trainer's optimiser
            self.reducer = PairReducer(model, optimizer, self.assignment, self.sizes)
        assert self.reducer is not None
        # torch's wrapper would average over all workers, in the backward pass
        unsynchronised = model.no_sync() if is_torch_ddp(model) else contextlib.nullcontext()
        with self.reducer.step(), unsynchronised:
            yield
        if is_stand_in:
            # zeros of a stand-in batch would pass for the gradient of a batch: the reducer would
            # count the parameters as touched, and Adam would move them along their momentum
            for parameter in model.parameters():
                parameter.grad = None

    def reducer_of(self, optimizer: FairseqOptimizer) -> Optional[PairReducer]:
        """Return the reducer of the optimiser's parameters; None before its first update."""
        # a trainer that loads a checkpoint builds a new optimiser
        is_present = self.reducer is not None and self.reducer.optimizer is optimizer
        return self.reducer if is_present else None

    def send_parameters(self) -> None:
        """Give every worker all parameters, which validation needs."""
        if self.reducer is not None:
            self.reducer.send_parameters()
