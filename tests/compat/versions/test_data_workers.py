"""Processes that load data are forks."""

import multiprocessing
import subprocess
import sys
import types

import pytest
import torch
from fairseq.distributed import utils

from fairseq_ext.compat.versions import data_workers


@pytest.fixture
def chosen(monkeypatch):
    """Function: let this be the start method that the program has chosen."""

    def choose(method):
        monkeypatch.setattr(multiprocessing, "get_start_method", lambda allow_none: method)

    return choose


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere forks were never the default")
def test_options_of_the_loader(chosen):
    chosen(None)
    assert data_workers.worker_options(0) == {}  # torch refuses it without processes
    assert data_workers.worker_options(2) == {"multiprocessing_context": "fork"}
    chosen("forkserver")
    assert data_workers.worker_options(2) == {"multiprocessing_context": "fork"}
    chosen("spawn")
    assert data_workers.worker_options(2) == {}


@pytest.mark.parametrize("count", [0, 1])
def test_batches_are_loaded(count, plain):
    """By a copy of fairseq's module, whatever this Python is."""
    iterators = plain("fairseq.data.iterators")
    data_workers.data_is_loaded_in_forks(iterators)

    class Numbers(torch.utils.data.Dataset):  # a local class: no other process can import it
        def __getitem__(self, index):
            return index

        def __len__(self):
            return 4

    loader = iterators.torch.utils.data.DataLoader(
        Numbers(), collate_fn=list, batch_sampler=[[0, 1], [3]], num_workers=count
    )
    assert isinstance(loader, torch.utils.data.DataLoader)
    assert list(loader) == [[0, 1], [3]]
    assert iterators.torch.utils.data.Dataset is torch.utils.data.Dataset
    assert iterators.torch.tensor is torch.tensor


COMMAND = """
import multiprocessing, sys
if len(sys.argv) > 1:
    multiprocessing.set_start_method(sys.argv[1])
import fairseq_cli
print(multiprocessing.get_start_method(allow_none=True))
"""


@pytest.mark.skipif(
    sys.platform != "linux" or sys.version_info < (3, 14),
    reason="forks are the default before 3.14",
)
@pytest.mark.parametrize("choice, method", [([], "fork"), (["spawn"], "spawn")])
def test_commands_fork(choice, method):
    command = [sys.executable, "-c", COMMAND, *choice]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.splitlines()[-1] == method


def write_start_method(cfg):
    """What a worker runs as its training."""
    cfg.file.write_text(multiprocessing.get_start_method(), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere forks were never the default")
def test_processes_of_spawned_workers_are_forks(tmp_path):
    workers = types.SimpleNamespace(
        distributed_world_size=1,
        distributed_rank=0,
        distributed_init_method=f"file://{tmp_path}/store",
        distributed_backend="gloo",
        distributed_num_procs=1,
    )
    cfg = types.SimpleNamespace(
        distributed_training=workers,
        common=types.SimpleNamespace(cpu=True, tpu=False, model_parallel_size=1),
        file=tmp_path / "method",
    )
    torch.multiprocessing.spawn(utils.distributed_main, args=(write_start_method, cfg, {}))
    assert cfg.file.read_text(encoding="utf-8") == "fork"
    assert multiprocessing.get_start_method(allow_none=True) in (None, "fork")  # not of the command
