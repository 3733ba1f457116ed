"""Data-parallel training: its processes, on CPUs too."""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
from typing import TYPE_CHECKING, Any, Callable, Iterator

from ..module_overlay import ModuleOverlay
from ..patch_registry import PatchedModule, patch, since

if TYPE_CHECKING:
    from fairseq.dataclass.configs import FairseqConfig
    from torch import nn


@patch(
    "fairseq.models.distributed_fairseq_model",
    because="any torch: --ddp-backend pytorch_ddp passes device_ids, which torch refuses for "
    "modules on the CPU",
)
def data_parallel_on_cpu(module: PatchedModule) -> None:
    """Wrap models on the CPU without device ids."""
    wrap = module.DistributedDataParallel

    def DistributedDataParallel(  # noqa: N802  (it replaces the class of this name)
        module: nn.Module, *args: Any, **kwargs: Any
    ) -> nn.Module:
        # all of it: fairseq moves models as a whole
        if next(module.parameters()).device.type == "cpu":
            kwargs.update(device_ids=None, output_device=None)
        return wrap(module, *args, **kwargs)

    module.DistributedDataParallel = DistributedDataParallel


@patch(
    "fairseq.options",
    because="torch 2.0: torch.distributed.launch passes --local-rank, fairseq knows --local_rank",
    conditions=[since("torch", 2, 0)],
)
def local_rank_with_hyphen(module: PatchedModule) -> None:
    """Let commands with options for several workers take --local-rank as well."""
    add = module.add_distributed_training_args

    def add_distributed_training_args(
        parser: argparse.ArgumentParser, default_world_size: int | None = None
    ) -> argparse._ArgumentGroup:
        group = add(parser, default_world_size)
        group.add_argument(
            "--local-rank",
            dest="device_id",  # where --local_rank puts it
            type=int,
            default=argparse.SUPPRESS,  # the default of --local_rank holds
            help=argparse.SUPPRESS,
        )
        return group

    module.add_distributed_training_args = add_distributed_training_args


@patch(
    "fairseq.distributed.utils",
    because="fairseq 0.12.2: --distributed-world-size 2 --cpu ends in 'world size is 2 but have 0 "
    "available devices', because as many processes are started as there are GPUs",
)
def workers_on_cpus(module: PatchedModule) -> None:
    """With --cpu, start as many processes as --distributed-world-size says, over gloo."""
    stock = module.call_main

    @functools.wraps(stock)
    def call_main(cfg: FairseqConfig, main: Callable[..., Any], **kwargs: Any) -> Any:
        workers = cfg.distributed_training
        # torchrun, Slurm and --distributed-init-method have processes on other computers too
        is_local = workers.distributed_init_method is None and workers.distributed_port <= 0
        is_local = is_local and "MASTER_ADDR" not in os.environ
        spawns = is_local and not workers.distributed_no_spawn
        if not (cfg.common.cpu and spawns and workers.distributed_world_size > 1):
            return stock(cfg, main, **kwargs)
        if workers.distributed_backend == "nccl":  # the default, which is for GPUs
            workers.distributed_backend = "gloo"
        size = workers.distributed_world_size
        with _cuda_with(module, device_count=lambda: size):
            return stock(cfg, main, **kwargs)

    module.call_main = call_main


@patch(
    "fairseq.distributed.utils",
    because="fairseq 0.12.2: with --distributed-init-method on a machine without GPUs no process "
    "is started, and the command ends well without any training; a worker that dies shows a "
    "traceback of torch",
)
def workers_that_die_are_named(module: PatchedModule) -> None:
    """Refuse to start no process at all; name the worker whose end ended the others."""
    stock = module.call_main

    @functools.wraps(stock)
    def call_main(cfg: FairseqConfig, main: Callable[..., Any], **kwargs: Any) -> Any:
        from torch.multiprocessing.spawn import ProcessExitedException

        workers = cfg.distributed_training
        # fairseq's condition for starting the processes itself
        spawns = workers.distributed_init_method is not None and not workers.distributed_no_spawn
        if spawns and not cfg.common.tpu and module.torch.cuda.device_count() == 0:
            raise ValueError(
                f"--distributed-init-method {workers.distributed_init_method}: fairseq starts a "
                "process for each GPU, and there is none; start the processes yourself, with "
                "torchrun or --distributed-rank, and add --distributed-no-spawn"
            )
        first = workers.distributed_rank or 0
        try:
            return stock(cfg, main, **kwargs)
        except ProcessExitedException as error:
            # error_index counts the processes that this command has
            # started, the first of rank ``first``
            ended = error.signal_name or f"status {error.exit_code}"
            raise ChildProcessError(
                f"the worker of rank {first + error.error_index} died ({ended}); the others were "
                "ended"
            ) from error

    module.call_main = call_main


@contextlib.contextmanager
def _cuda_with(module: PatchedModule, **names: Any) -> Iterator[None]:
    """Replace names of torch.cuda for `module` alone, for a while."""
    torch = module.torch
    module.torch = ModuleOverlay(torch, cuda=ModuleOverlay(torch.cuda, **names))
    try:
        yield
    finally:
        module.torch = torch


@patch(
    "fairseq.distributed.utils",
    because="fairseq 0.12.2: workers with --cpu begin with a message from GPU to GPU if the "
    "machine has one, and without one those that gather what they log end in 'type "
    "torch.cuda.ByteTensor not available'",
)
def workers_on_cpus_need_no_gpu(module: PatchedModule) -> None:
    """Exchange tensors of the CPU with --cpu, and objects through the CPU over all but NCCL."""
    import torch

    init, gather = module.distributed_init, module.all_gather_list

    @functools.wraps(init)
    def distributed_init(cfg: Any) -> int:
        common = getattr(cfg, "common", cfg)  # a Namespace has all options side by side
        if not getattr(common, "cpu", False):
            return int(init(cfg))
        with _cuda_with(module, is_available=lambda: False):
            return int(init(cfg))

    @functools.wraps(gather)
    def all_gather_list(data: Any, group: Any = None, max_size: int = 16384) -> list[Any]:
        group = module.get_global_group() if group is None else group
        is_nccl = torch.distributed.is_initialized() and torch.distributed.get_backend() == "nccl"
        if not (is_nccl or module.use_xla()):
            size = max_size * module.get_world_size(group=group)
            # stock reads its buffers from here and makes those that are missing, on the GPU
            buffers = all_gather_list.__dict__
            if "_buffer" not in buffers or buffers["_buffer"].numel() < size:
                buffers["_buffer"] = torch.empty(size, dtype=torch.uint8)
                buffers["_cpu_buffer"] = torch.empty(max_size, dtype=torch.uint8)
        gathered: list[Any] = gather(data, group, max_size)
        return gathered

    module.distributed_init, module.all_gather_list = distributed_init, all_gather_list
