"""Data-parallel training on CPUs, and the launchers of torch."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .patch_registry import PatchedModule, patch, since

if TYPE_CHECKING:
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
