"""Forks of fairseq before 0.12 have the patches that fit them, and read their checkpoints."""

import argparse
import sys
from types import ModuleType

import pytest
import torch
from fairseq.data import Dictionary

from fairseq_ext.compat import patch_registry
from fairseq_ext.compat.checkpoints import older_forks
from fairseq_ext.compat.patch_registry import AFTER, Patch, has_older_fairseq


@pytest.fixture
def fork(tmp_path, monkeypatch):
    (tmp_path / "models").mkdir()
    package = ModuleType("fairseq")
    package.__path__ = [str(tmp_path)]
    monkeypatch.setitem(sys.modules, "fairseq", package)
    return tmp_path / "models"


def test_the_release_is_not_older():
    assert not has_older_fairseq()


def test_forks(fork):
    assert has_older_fairseq()
    (fork / "transformer").mkdir()
    assert not has_older_fairseq()


def unmet(modules, for_older=False):
    return Patch(lambda module: None, modules, "", (), AFTER, for_older).unmet_condition()


def test_patches_of_older_forks(fork):
    assert "older" in unmet(("fairseq.utils",))
    assert unmet(("fairseq.utils",), for_older=True) is None
    assert unmet(("hydra",)) is None


def test_what_they_need_is_applied():
    names = {patch.name for patch in patch_registry.all_patches() if patch.for_older}
    assert {"user_dirs_are_noted", "plugins_mask_with_bytes"} <= names
    assert "checkpoints_hold_data_only" not in names


def test_classes_of_checkpoints():
    classes = older_forks.classes_of_older_checkpoints()
    assert argparse.Namespace in classes and Dictionary in classes
    assert "AverageMeter" in {kind.__name__ for kind in classes}


def test_beams_of_older_searches(fork):
    search = ModuleType("fairseq.search")
    search.torch = torch
    older_forks.older_searches_divide_integers(search)
    beams = torch.empty(2, dtype=torch.long)
    search.torch.div(torch.tensor([7, 12]), 5, out=beams)
    assert beams.tolist() == [1, 2]
    assert search.torch.div(torch.tensor([1.0]), 2).item() == 0.5
    with pytest.raises(RuntimeError):
        torch.div(torch.tensor([7, 12]), 5, out=beams)
