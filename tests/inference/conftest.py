"""Very small checkpoints of every system, one update old."""

import pytest
from common import inprocess
from options.systems import SYSTEMS, Data


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
            system, folder = SYSTEMS[name], tmp_path_factory.mktemp(name)
            inprocess.train(
                *system.words(data[system.data], *more),
                *("--max-update", 1, "--batch-size", 8, "--disable-validation"),
                *("--save-dir", folder, "--no-epoch-checkpoints"),
            )
            paths[name, more] = folder / "checkpoint_last.pt"
        return paths[name, more]

    return checkpoint
