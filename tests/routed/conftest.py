"""Routed models of small sizes, built through fairseq's own options, without training data."""

import copy

import pytest
from common.inprocess import configuration
from fairseq import options, tasks
from streams.directions import randomise, write_dictionaries

import fairseq_ext.routed  # noqa: F401

LAYERED = ["--embed-dim", 10, "--hidden-size", 8, "--attention-size", 14]
SMALL = [*LAYERED, "--router-size", 6]
PAIRS = "xx-yy,xx-zz,zz-yy"


@pytest.fixture(scope="session")
def dictionaries(tmp_path_factory):
    """A folder with dictionaries of different sizes for xx, yy and zz."""
    return write_dictionaries(tmp_path_factory.mktemp("dictionaries"))


@pytest.fixture(scope="session")
def routed_task(dictionaries):
    """Function (options...) -> (task, model), small."""

    def build(*flags, arch="routed_gru", pairs=PAIRS, main="xx-yy", sizes=None, data=None):
        if sizes is None:
            sizes = LAYERED if arch.startswith("mtl") or "layers" in flags else SMALL
        arguments = [data or dictionaries, "--task", "routed_mtl", "--arch", arch, *sizes]
        arguments += ["--lang-pairs", pairs] if pairs else []
        arguments += ["--main-pair", main] if main else []
        cfg = configuration(options.get_training_parser(), [*arguments, *flags])
        task = tasks.setup_task(cfg.task)
        return task, task.build_model(cfg.model)

    return build


ARCHS = ["routed_gru", "mtl_full_gru", "mtl_partial_gru"]


@pytest.fixture(scope="session")
def built(routed_task):
    """{architecture: model}."""
    return {arch: routed_task(arch=arch)[1] for arch in ARCHS}


@pytest.fixture(params=ARCHS)
def model(built, request):
    """A copy with random weights of each architecture."""
    return randomise(copy.deepcopy(built[request.param]))


@pytest.fixture
def routed(built):
    """A copy with random weights of routed_gru."""
    return randomise(copy.deepcopy(built["routed_gru"]))
