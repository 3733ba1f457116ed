"""Data parallel training on CPU, and the launchers of torch."""

import argparse

from .registry import patch, since


@patch(
    "fairseq.models.distributed_fairseq_model",
    because="any torch: --ddp-backend pytorch_ddp passes device_ids, which torch refuses for "
    "modules on the CPU",
)
def data_parallel_on_cpu(module):
    """Wrap models on the CPU without device ids."""
    wrap = module.DistributedDataParallel

    def DistributedDataParallel(module, *args, **named):
        if next(module.parameters()).device.type == "cpu":
            named.update(device_ids=None, output_device=None)
        return wrap(module, *args, **named)

    module.DistributedDataParallel = DistributedDataParallel


@patch(
    "fairseq.options",
    because="torch 2.0: torch.distributed.launch passes --local-rank, fairseq knows --local_rank",
    conditions=[since("torch", 2, 0)],
)
def local_rank_with_hyphen(module):
    """Let commands with options for several workers take --local-rank as well."""
    add = module.add_distributed_training_args

    def add_distributed_training_args(parser, default_world_size=None):
        group = add(parser, default_world_size)
        group.add_argument(
            "--local-rank",
            dest="device_id",
            type=int,
            default=argparse.SUPPRESS,
            help=argparse.SUPPRESS,
        )
        return group

    module.add_distributed_training_args = add_distributed_training_args
