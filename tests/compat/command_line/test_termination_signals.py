"""A signal ends a command in one line; the same command continues a training."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
import types

import pytest
from fairseq import checkpoint_utils

from fairseq_ext.compat.command_line.entry_points import commands_end_by_signals_in_one_line
from fairseq_ext.compat.command_line.preprocess_output import whole_or_nothing
from fairseq_ext.compat.command_line.result_files import result_files_are_whole


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


def ended(command, program, number, errors):
    """The last line of a command, run in a fork, that a signal ends as soon as it calls `ready`.

    command: takes `ready`. errors: the file of what it prints.
    """
    module = types.SimpleNamespace(__name__=program)
    reading, writing = os.pipe()
    module.cli_main = lambda: command(lambda: (os.write(writing, b"!"), time.sleep(60)))
    commands_end_by_signals_in_one_line(module)
    child = os.fork()
    if child == 0:
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
        signal.signal(number, signal.SIG_DFL)
        try:
            module.cli_main()
        finally:
            os._exit(1)
    assert os.read(reading, 1) == b"!"
    os.kill(child, number)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -number
    os.close(reading)
    os.close(writing)
    text = errors.read_text()
    assert "Traceback" not in text
    return text.splitlines()[-1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("text", ["H-0", ""])
def test_what_a_generation_has_written_is_named(number, text, tmp_path):
    """It stays under the name of a part, with what was still in the buffer."""
    folder = tmp_path / "results"
    folder.mkdir()

    def generate(ready):
        module = types.SimpleNamespace()
        result_files_are_whole(module)
        with module.open(str(folder / "generate-test.txt"), "w") as file:
            file.write(text)
            ready()

    said = ended(generate, "fairseq_cli.generate", number, tmp_path / "errors")
    part = folder / "generate-test.txt.part"
    left = f"{part} is incomplete" if text else "none of its files is half-written"
    assert said == f"fairseq-generate: ended by {signal.Signals(number).name}; {left}"
    assert [(path, path.read_text()) for path in folder.iterdir()] == [(part, text)] * bool(text)


def binarise(path):
    """Write a part of a set again and again, as a process of --workers."""
    while True:
        path.write_text("a part")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_sets_that_are_not_whole_are_removed(number, tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    langs = {"source_lang": None, "target_lang": None, "srcdict": None, "tgtdict": None}

    def preprocess(ready):
        args = types.SimpleNamespace(destdir=str(folder), **langs)
        with whole_or_nothing(args), multiprocessing.get_context("fork").Pool(1) as pool:
            for name in ("dict.txt", "preprocess.log"):
                (folder / name).write_text("a part")
            pool.apply_async(binarise, [folder / "train.pt1.bin"])
            while not (folder / "train.pt1.bin").exists():
                time.sleep(0.01)
            ready()

    said = ended(preprocess, "fairseq_cli.preprocess", number, tmp_path / "errors")
    left = "none of its files is half-written"
    assert said == f"fairseq-preprocess: ended by {signal.Signals(number).name}; {left}"
    assert [path.name for path in folder.iterdir()] == ["preprocess.log"]
