"""Processes that load data start by a fork, as they did until Python 3.13 in most commands.

Python 3.14 starts processes by a server. Each then imports torch and fairseq anew, the dataset must
be picklable, and the processes outlive a training that is killed: torch ends them when their parent
has gone, which is the server, and the server waits for them.

The workers of a distributed training that fairseq starts itself are spawned, and Python lets what
such a process starts be spawned too, in all versions.
"""

from __future__ import annotations

import functools
import multiprocessing
import sys
from typing import Any, Callable

from ..module_overlay import ModuleOverlay, overlay_names
from ..patch_registry import BEFORE, PatchedModule, patch, since


def worker_options(num_workers: int) -> dict[str, Any]:
    """Return what torch's DataLoader is given more: how its processes start."""
    # the default of 3.14; a program that has chosen another way keeps it
    is_default = multiprocessing.get_start_method(allow_none=True) in (None, "forkserver")
    if num_workers == 0 or not is_default or sys.platform != "linux":
        return {}
    return {"multiprocessing_context": "fork"}


@patch(
    "fairseq.data.iterators",
    because="Python 3.14 starts processes by a server: those of --num-workers import torch anew "
    "and outlive a training that ends by a signal",
    conditions=[since("python", 3, 14)],
)
def data_is_loaded_in_forks(module: PatchedModule) -> None:
    """Give fairseq a DataLoader whose processes are forks."""
    utils = module.torch.utils

    def data_loader(*args: Any, num_workers: int = 0, **kwargs: Any) -> Any:
        options = {**worker_options(num_workers), **kwargs}
        return utils.data.DataLoader(*args, num_workers=num_workers, **options)

    data = ModuleOverlay(utils.data, DataLoader=data_loader)
    overlay_names(module, "torch", utils=ModuleOverlay(utils, data=data))


@patch(
    "fairseq_cli",
    because="Python 3.14, as before: it warns of locks when a command has ended by a signal",
    conditions=[since("python", 3, 14)],
    moment=BEFORE,
)
def commands_start_processes_by_forks(module_name: str) -> None:
    """Let processes and locks of fairseq's commands be those of forks, unless one has chosen."""
    is_chosen = multiprocessing.get_start_method(allow_none=True) is not None
    if not is_chosen and sys.platform == "linux":
        multiprocessing.set_start_method("fork")


@patch(
    "fairseq.distributed.utils",
    because="fairseq 0.12.2: in a training whose workers it starts itself, the processes of "
    "--num-workers import torch and fairseq anew, and Python warns at the end of 'leaked semaphore "
    "objects'",
)
def spawned_workers_load_data_in_forks(module: PatchedModule) -> None:
    """Let processes of spawned workers be forks, as they are where torchrun starts the workers."""
    stock = module.distributed_main

    @functools.wraps(stock)
    def distributed_main(i: int, main: Callable[..., Any], cfg: Any, kwargs: Any) -> None:
        is_spawned = multiprocessing.parent_process() is not None
        # Python forces the method by which this process was started upon its own processes
        if is_spawned and multiprocessing.get_start_method() == "spawn" and sys.platform == "linux":
            multiprocessing.set_start_method("fork", force=True)
        stock(i, main, cfg, kwargs)

    module.distributed_main = distributed_main
