"""Very small checkpoints of every system, one update old."""

import pytest
import torch
from common import inprocess
from inference.stock import ALL
from options.systems import Data


@pytest.fixture(scope="session")
def data(toy_corpus, tmp_path_factory):
    """{kind of data: folder}."""
    return Data(toy_corpus, tmp_path_factory.mktemp)


@pytest.fixture(scope="session")
def checkpoint_of(data, tmp_path_factory):
    """Function (name of a system, more options of its training) -> its checkpoint."""
    paths = {}

    def checkpoint(name, *more):
        if (name, more) not in paths:
            system, folder = ALL[name], tmp_path_factory.mktemp(name)
            inprocess.train(
                *system.words(data[system.data], *more),
                *("--max-update", 1, "--batch-size", 8, "--disable-validation"),
                *("--save-dir", folder, "--no-epoch-checkpoints"),
            )
            paths[name, more] = folder / "checkpoint_last.pt"
        return paths[name, more]

    return checkpoint


@pytest.fixture(scope="session")
def sharp(checkpoint_of, tmp_path_factory):
    """The same function, of models whose attention is far from uniform."""
    paths = {}

    def checkpoint(name, *more):
        if (name, more) not in paths:
            state = torch.load(checkpoint_of(name, *more), weights_only=True)
            generator = torch.Generator().manual_seed(1)
            for value in state["model"].values():
                if value.is_floating_point() and value.dim() > 1:
                    value += 0.7 * torch.randn(value.shape, generator=generator)
            paths[name, more] = tmp_path_factory.mktemp("sharp") / "checkpoint.pt"
            torch.save(state, paths[name, more])
        return paths[name, more]

    return checkpoint
