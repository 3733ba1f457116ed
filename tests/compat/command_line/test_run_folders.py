"""Relative paths of fairseq-hydra-train, which runs in a folder of its own."""

import os

import pytest
from omegaconf import OmegaConf

from fairseq_ext.compat.command_line.run_folders import check_paths
from fairseq_ext.compat.user_errors import OptionError


@pytest.fixture
def start(tmp_path, monkeypatch):
    """The folder where the command is called, with data; the run has another one."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    return tmp_path


def check(start, **options):
    cfg = {"task": {"_name": "language_modeling", **options}, "model": "lstm_lm", "bpe": None}
    check_paths(OmegaConf.create(cfg), str(start))


def test_data_of_another_folder_is_refused(start):
    with pytest.raises(OptionError, match=r"task.data bin is not in .*run, where hydra runs"):
        check(start, data="bin")
    with pytest.raises(OptionError, match=r"such as \$\{hydra:runtime.cwd\}/bin"):
        check(start, data=f"{start / 'bin'}{os.pathsep}bin")


def test_other_paths_pass(start):
    """What is nowhere, fairseq names itself."""
    for data in (str(start / "bin"), "../bin", "missing", "", None):
        check(start, data=data)
    check(start, other="bin")
