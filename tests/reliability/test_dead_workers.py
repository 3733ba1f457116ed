"""A worker that dies ends the others within a minute, and is named.

fairseq's own start of workers, one for each GPU, cannot run without GPUs: of it only the message is
tested.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

TINY = ["--arch", "dual_transformer_tiny", "--embed-dim", 16, "--ffn-embed-dim", 24, "--layers", 1]
TINY += ["--attention-heads", 2, "--optimizer", "adam", "--batch-size", 8, "--cpu"]
TINY += ["--task", "dual_translation", "-s", "xx", "-t", "yy", "--disable-validation"]
BACKEND = ["--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"]
BACKEND += ["--distributed-no-spawn", "--distributed-world-size", 2]


def workers_of(launcher: int):
    """{rank: process number} of the workers that torchrun has started."""
    workers = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:  # it has just ended
            continue
        if int(parent) == launcher:
            ranks = [entry[5:] for entry in variables if entry.startswith(b"RANK=")]
            workers.update({int(rank): int(folder.name) for rank in ranks})
    return workers


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc")
def test_torchrun_names_the_worker(toy_corpus, user_dir, tmp_path):
    """The second of two workers is killed in the middle of the training."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", 2]
    command += ["--standalone", Path(sys.executable).parent / "fairseq-train"]
    command += [toy_corpus.two, "--user-dir", user_dir, *TINY, *BACKEND]
    command += ["--save-dir", tmp_path / "run"]
    output = tmp_path / "output"
    with open(output, "wb") as file:
        process = subprocess.Popen(
            [str(word) for word in (*command, "--save-interval-updates", 1)],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    last = tmp_path / "run" / "checkpoint_last.pt"
    until = time.time() + 240
    while not last.exists() and process.poll() is None and time.time() < until:
        time.sleep(0.1)
    workers = workers_of(process.pid)
    assert sorted(workers) == [0, 1], output.read_text(errors="replace")[-2000:]
    os.kill(workers[1], signal.SIGKILL)
    killed = time.time()
    status = process.wait(timeout=120)
    assert time.time() - killed < 60 and status != 0
    report = output.read_text(errors="replace")
    assert f"Signal 9 (SIGKILL) received by PID {workers[1]}" in report
    assert "rank      : 1 (local_rank: 1)" in report
    for number in workers.values():
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


def test_message_for_the_workers_that_fairseq_starts(monkeypatch):
    """The error of torch.multiprocessing becomes a line with the rank of the worker."""
    from fairseq.distributed import utils
    from torch.multiprocessing.spawn import ProcessExitedException

    from fairseq_ext.compat.training.distributed import workers_that_die_are_named

    def call_main(cfg, main, **named):
        raise ProcessExitedException("died", 1, 77, exit_code=-9, signal_name="SIGKILL")

    module = SimpleNamespace(call_main=call_main, torch=utils.torch)
    workers_that_die_are_named(module)
    workers = SimpleNamespace(
        distributed_init_method=None, distributed_no_spawn=False, distributed_rank=2
    )
    cfg = SimpleNamespace(distributed_training=workers, common=SimpleNamespace(tpu=False))
    with pytest.raises(ChildProcessError, match=r"worker of rank 3 died \(SIGKILL\)"):
        module.call_main(cfg, None)
