"""A signal ends a command in one line; the same command continues a training."""

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
    said = "fairseq-train: ended by SIGTERM; none of its files is half-written"
    assert errors.splitlines()[-1] == said and "Traceback" not in errors


COMMAND = """
import multiprocessing, os, sys, time, types
from fairseq_ext.compat.command_line.entry_points import commands_end_by_signals_in_one_line
from fairseq_ext.compat.command_line.preprocess_output import whole_or_nothing
from fairseq_ext.compat.command_line.result_files import result_files_are_whole

program, folder, *words = sys.argv[1:]

def ready():
    print("ready", flush=True)
    time.sleep(60)

{command}

module = types.SimpleNamespace(__name__=program, cli_main=command)
commands_end_by_signals_in_one_line(module)
module.cli_main()
"""


def ended(command, number, program, *words):
    """The last line of a command that a signal ends as soon as it calls ``ready``.

    command: Python that defines ``command``. words: its folder and what else it reads.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND.replace("{command}", command), program, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -number
    assert "Traceback" not in errors
    return errors.splitlines()[-1]


GENERATION = """
def command():
    module = types.SimpleNamespace()
    result_files_are_whole(module)
    with module.open(f"{folder}/generate-test.txt", "w") as file:
        file.write("".join(words))
        ready()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("text", ["H-0", ""])
def test_what_a_generation_has_written_is_named(number, text, tmp_path):
    """It stays under the name of a part, with what was still in the buffer."""
    said = ended(GENERATION, number, "fairseq_cli.generate", tmp_path, text)
    part = tmp_path / "generate-test.txt.part"
    left = f"{part} is incomplete" if text else "none of its files is half-written"
    assert said == f"fairseq-generate: ended by {signal.Signals(number).name}; {left}"
    assert [(path, path.read_text()) for path in tmp_path.iterdir()] == [(part, text)] * bool(text)


PREPROCESSING = """
def binarise(path):  # again and again, as a process of --workers
    while True:
        with open(path, "w") as file:
            file.write("a part")

def command():
    langs = {"source_lang": None, "target_lang": None, "srcdict": None, "tgtdict": None}
    args = types.SimpleNamespace(destdir=folder, **langs)
    with whole_or_nothing(args), multiprocessing.get_context("fork").Pool(1) as pool:
        for name in ("dict.txt", "preprocess.log"):
            with open(f"{folder}/{name}", "w") as file:
                file.write("a part")
        pool.apply_async(binarise, [f"{folder}/train.pt1.bin"])
        while not os.path.exists(f"{folder}/train.pt1.bin"):
            time.sleep(0.01)
        ready()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_sets_that_are_not_whole_are_removed(number, tmp_path):
    said = ended(PREPROCESSING, number, "fairseq_cli.preprocess", tmp_path)
    left = "none of its files is half-written"
    assert said == f"fairseq-preprocess: ended by {signal.Signals(number).name}; {left}"
    assert [path.name for path in tmp_path.iterdir()] == ["preprocess.log"]
