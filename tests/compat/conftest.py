"""Fixtures of the tests of fairseq_ext/compat."""

import importlib.util
import os
import signal
import subprocess
import sys

import pytest
from common import inprocess

import fairseq_ext  # noqa: F401  (its first act is to make the patches active)
from fairseq_ext import compat

TIMES = ("wps", "ups", "wall", "update")  # ends of the names of what a log says of them
TINY = [
    *("--arch", "transformer", "--share-all-embeddings"),
    *("--encoder-layers", 1, "--encoder-embed-dim", 16, "--encoder-ffn-embed-dim", 16),
    *("--decoder-layers", 1, "--decoder-embed-dim", 16, "--decoder-ffn-embed-dim", 16),
    *("--encoder-attention-heads", 2, "--decoder-attention-heads", 2),
]
OPTIMISATION = [
    *("--optimizer", "adam", "--lr", "1e-3", "--criterion", "label_smoothed_cross_entropy"),
    *("--max-tokens", 800, "--log-format", "simple", "--log-interval", 1),
]


@pytest.fixture
def tiny_training(toy_corpus):
    """Arguments of fairseq-train for a stock transformer on the toy corpus, saving not named."""
    return [toy_corpus.two, "-s", "xx", "-t", "yy", *TINY, *OPTIMISATION]


@pytest.fixture
def train(tiny_training):
    """Function (save_dir, options...) -> records of the log, without times."""

    def train(folder, *flags):
        records = inprocess.train(*tiny_training, "--save-dir", folder, *flags)
        return [
            {name: value for name, value in record.items() if not name.endswith(TIMES)}
            for record in records
        ]

    return train


@pytest.fixture
def plain():
    """Function: a second copy of a module, loaded without the patches, under another name."""

    def load(name):
        path = importlib.util.find_spec(name).origin
        spec = importlib.util.spec_from_file_location("plain_" + name.replace(".", "_"), path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def call(monkeypatch, capsys):
    """Function: run `module.cli_main()` in this process with a command line; gives its stdout."""

    def call(module, *arguments):
        monkeypatch.setattr(sys, "argv", [module.__name__, *map(str, arguments)])
        module.cli_main()
        return capsys.readouterr().out

    return call


HOLD = """
import os, sys, time
from fairseq_ext_compat.checkpoints.folder_lock import folder_lock
with folder_lock(sys.argv[1]):
    if os.fork() == 0:
        time.sleep(60)  # as processes that load data
        os._exit(0)
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """A process that holds the lock of tmp_path / "run", and its child."""
    folder = tmp_path / "run"
    folder.mkdir()
    os.symlink(os.path.dirname(compat.__file__), tmp_path / "fairseq_ext_compat")
    program = HOLD.replace("from fairseq", "sys.path.insert(0, sys.argv[2])\nfrom fairseq")
    process = subprocess.Popen(
        [sys.executable, "-c", program, folder, tmp_path],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    assert process.stdout.readline() == "held\n"
    yield folder, process
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
