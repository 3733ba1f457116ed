"""A signal ends a training in one line, and the same command continues."""

import os
import signal
import subprocess
import sys
import time

import pytest
from fairseq import checkpoint_utils


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_signal_ends_a_training_in_one_line(number, tiny_training, tmp_path):
    """With the last checkpoint whole, nothing else left, and the status that shells expect."""
    command = os.path.join(os.path.dirname(sys.executable), "fairseq-train")
    flags = ["--save-dir", tmp_path / "run", "--save-interval-updates", "1", "--cpu"]
    flags += ["--disable-validation", "--no-epoch-checkpoints", "--num-workers", "2"]
    process = subprocess.Popen(
        [command, *map(str, [*tiny_training, *flags])],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        # a shell's background processes ignore SIGINT, and so would what they start
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    last = tmp_path / "run" / "checkpoint_last.pt"
    until = time.time() + 120
    while not last.exists() and time.time() < until:
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -number
    name = signal.Signals(number).name
    said = f"fairseq-train: ended by {name}; {last} is whole: the same command goes on from it"
    assert errors.strip().splitlines()[-1] == said and "Traceback" not in errors
    assert checkpoint_utils.torch.load(last, weights_only=True)["model"]
    assert not [path for path in os.listdir(tmp_path / "run") if path.startswith(".")]


WITH_A_WORKER = """
import multiprocessing, time
from fairseq_ext.compat.command_line.termination_signals import exits_cleanly_on_signals

def load(ours, theirs):
    theirs.close()
    ours.recv()  # raises EOFError when the training has gone

def command():
    ours, theirs = multiprocessing.Pipe()
    multiprocessing.get_context("fork").Process(
        target=load, args=(ours, theirs), daemon=True
    ).start()
    print("started", flush=True)  # not by the process: this one may not know of it yet
    time.sleep(60)

exits_cleanly_on_signals("fairseq-train", command)()
"""


def test_processes_that_load_data_end_without_a_word():
    process = subprocess.Popen(
        [sys.executable, "-c", WITH_A_WORKER],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    said = "fairseq-train: ended by SIGTERM; nothing is half-written"
    assert errors.splitlines()[-1] == said and "Traceback" not in errors
