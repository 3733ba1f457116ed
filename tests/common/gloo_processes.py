"""Functions of a test in several processes that exchange tensors over gloo.

The processes are forks of a server that has nothing but imported modules: a fork of the test
process would have the locks of its threads, without the threads that release them.
"""

import multiprocessing
import pickle
from datetime import timedelta

import torch.distributed as dist
import torch.multiprocessing

multiprocessing.set_forkserver_preload(["fairseq.trainer", "fairseq_ext"])


def in_processes(count, worker, folder, *arguments):
    """[what ``worker`` (rank, folder, ...) returns in each of ``count`` connected processes]."""
    torch.multiprocessing.start_processes(
        _save_result, (count, worker, folder, *arguments), count, start_method="forkserver"
    )
    # not torch.load: weights_only of torch 1.13 reads no floats
    return [pickle.loads((folder / str(rank)).read_bytes()) for rank in range(count)]


def _save_result(rank, count, worker, folder, *arguments):
    import fairseq_ext  # noqa: F401  (the patches)

    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder / 'store'}",
        rank=rank,
        world_size=count,
        timeout=timedelta(seconds=120),
    )
    (folder / str(rank)).write_bytes(pickle.dumps(worker(rank, folder, *arguments)))
    dist.barrier()
    dist.destroy_process_group()
