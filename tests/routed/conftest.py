"""Routed models of small sizes, built through fairseq's own options, without training data."""

import copy

import pytest
import torch
from common.inprocess import configuration
from fairseq import options, tasks

import fairseq_ext.routed  # noqa: F401

SMALL = ["--embed-dim", 10, "--hidden-size", 8, "--attention-size", 14, "--router-size", 6]
WORDS = {"xx": 13, "yy": 15, "zz": 11}  # entries of the dictionaries, without task tokens
PAIRS = "xx-yy,xx-zz,zz-yy"


@pytest.fixture(scope="session")
def dictionaries(tmp_path_factory):
    """A folder with dictionaries of different sizes for xx, yy and zz."""
    folder = tmp_path_factory.mktemp("dictionaries")
    for lang, size in WORDS.items():
        lines = "".join(f"{lang}{number} 1\n" for number in range(size - 4))
        (folder / f"dict.{lang}.txt").write_text(lines, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def routed_task(dictionaries):
    """Function (options...) -> (task, model), small."""

    def build(*flags, arch="routed_gru", pairs=PAIRS, main="xx-yy", sizes=SMALL, data=None):
        arguments = [data or dictionaries, "--task", "routed_mtl", "--arch", arch, *sizes]
        arguments += ["--lang-pairs", pairs] if pairs else []
        arguments += ["--main-pair", main] if main else []
        cfg = configuration(options.get_training_parser(), [*arguments, *flags])
        task = tasks.setup_task(cfg.task)
        return task, task.build_model(cfg.model)

    return build


def randomise(model, seed=0):
    """Weights far from their start: with zero biases and embeddings padding could not be seen."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            scale = 1.0 if "energy" in name or "sources" in name or "embedding" in name else 0.4
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(scale * noise)
    return model


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
