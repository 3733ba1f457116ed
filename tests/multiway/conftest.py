"""Multi-way models of small sizes, built through fairseq's own options, without training data."""

import copy

import pytest
from common.inprocess import configuration
from fairseq import options, tasks
from streams.directions import randomise, write_dictionaries

SMALL = {
    "--embed-dim": 10,
    "--hidden-size": 12,
    "--context-size": 14,
    "--readout-size": 9,
    "--init-hidden-size": 7,
    "--init-size": 8,
}


@pytest.fixture(scope="session")
def dictionaries(tmp_path_factory):
    """A folder with dictionaries of different sizes for xx, yy and zz."""
    return write_dictionaries(tmp_path_factory.mktemp("dictionaries"))


@pytest.fixture(scope="session")
def multiway_task(dictionaries):
    """Function (options...) -> (task, model) of the arch multiway_gru, small."""

    def build(*flags, pairs="xx-yy,yy-xx,xx-zz,zz-xx", data=None, sizes=SMALL, arch="multiway_gru"):
        words = [word for entry in sizes.items() for word in entry]
        arguments = [data or dictionaries, "--task", "multiway_translation", "--arch", arch]
        arguments += [*words, *(["--lang-pairs", pairs] if pairs else []), *flags]
        cfg = configuration(options.get_training_parser(), arguments)
        task = tasks.setup_task(cfg.task)
        return task, task.build_model(cfg.model)

    return build


@pytest.fixture(scope="session")
def built(multiway_task):
    """The model of all directions between xx and each of yy and zz, built once."""
    return multiway_task()[1]


@pytest.fixture
def model(built):
    """A copy of it with random weights."""
    return randomise(copy.deepcopy(built))
