"""The list of what checkpoints may name."""

import pytest
import torch

from fairseq_ext.compat.checkpoints.data_only import _list_takes_names
from fairseq_ext.compat.checkpoints.safe_globals import fairseq_safe_globals


def names():
    """{name in files: class or function}."""
    entries = [
        entry if isinstance(entry, tuple) else (entry, f"{entry.__module__}.{entry.__qualname__}")
        for entry in fairseq_safe_globals()
    ]
    return {name: value for value, name in entries}


@pytest.mark.parametrize(
    "name",
    [
        "argparse.Namespace",
        "collections.OrderedDict",
        "fairseq.data.dictionary.Dictionary",
        "fairseq.logging.meters.AverageMeter",
        "fairseq.meters.AverageMeter",  # before fairseq 0.10
        "numpy.core.multiarray._reconstruct",  # numpy 1
        "numpy._core.multiarray._reconstruct",  # numpy 2
        "numpy.float64",
        "omegaconf.dictconfig.DictConfig",
    ],
)
def test_what_versions_of_fairseq_and_numpy_have_written_is_there(name):
    assert name in names()


def test_old_names_mean_the_present_classes():
    listed = names()
    assert listed["fairseq.meters.TimeMeter"] is listed["fairseq.logging.meters.TimeMeter"]


def test_nothing_on_the_list_reaches_the_system():
    """Neither modules that open files or start programs, nor what evaluates text."""
    modules = {name.rpartition(".")[0].partition(".")[0] for name in names()}
    assert not modules & {"os", "posix", "subprocess", "sys", "importlib", "shutil", "pickle"}
    assert not {"builtins.eval", "builtins.exec", "builtins.getattr"} & set(names())


@pytest.mark.skipif(not _list_takes_names(), reason="torch before 2.6")
def test_torch_takes_the_list():
    # the context manager of torch would leave the process without the list
    before = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    try:
        torch.serialization.add_safe_globals(fairseq_safe_globals())
        assert torch.serialization.get_safe_globals()
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(before)
