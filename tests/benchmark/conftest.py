"""What the tests of the benchmark share: its scripts, a tiny corpus, tiny sizes. No test times."""

import logging
from argparse import Namespace

import pytest
import torch
from common import inprocess
from speed.corpus import write_corpus


@pytest.fixture(autouse=True)
def as_before():
    """The commands set what holds for the whole process; the next test finds it as it was."""
    threads, disabled = torch.get_num_threads(), logging.root.manager.disable
    yield
    torch.set_num_threads(threads)
    logging.disable(disabled)


@pytest.fixture
def tiny():
    """Settings of a run with the smallest models."""
    return Namespace(
        **{"layers": 1, "embed_dim": 16, "ffn_embed_dim": 16, "heads": 2, "hidden": 16},
        **{"context": 12, "vocab": 40, "length": 5, "max_tokens": 100, "updates": 1},
        **{"repeats": 1, "device": "cpu", "precision": "fp32", "threads": 1, "flags": ""},
        searches=((2, 4),),
    )


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """Folder of a binarised corpus with the vocabulary and lengths of `tiny`, and three pairs."""
    folder = tmp_path_factory.mktemp("benchmark data")  # commands are not to split it
    return write_corpus(folder, 40, vocab=40, length=5, valid=8, pairs=3)


@pytest.fixture(scope="session")
def dual_checkpoint(toy_corpus, tmp_path_factory):
    """Of a tiny dual model that was trained for a moment."""
    folder = tmp_path_factory.mktemp("run")
    inprocess.train(
        *(toy_corpus.two, "--task", "dual_translation", "-s", "xx", "-t", "yy", "--dropout", 0),
        *("--arch", "dual_transformer_tiny", "--optimizer", "adam", "--lr", 0.01),
        *("--criterion", "cross_entropy", "--max-tokens", 300, "--max-update", 30),
        *("--save-dir", folder, "--no-epoch-checkpoints", "--disable-validation"),
    )
    return folder / "checkpoint_last.pt"
