"""The folders and numbers that run.py takes."""

import importlib.util

import pytest
from experiments import UsageError
from experiments.definition import FOLDER


@pytest.fixture(scope="module")
def script():
    """examples/run.py as a module; the benchmarks have another one of that name."""
    spec = importlib.util.spec_from_file_location("experiments_run", FOLDER / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("option, name", [("--data", "a:b"), ("--data", "a,b"), ("--runs", "a:b")])
def test_a_folder_that_is_two_to_fairseq_is_refused(script, tmp_path, option, name):
    (tmp_path / "test.toml").write_text('[systems.one]\ntrain = "echo"\n', encoding="utf-8")
    words = [str(tmp_path / "test.toml"), "one", "1", "--print", option, str(tmp_path / name)]
    with pytest.raises(
        UsageError, match=f"{option} {tmp_path / name}: .*'{name[1]}' for two paths"
    ):
        script.perform(script.arguments(words))


def test_a_number_of_processes_is_positive(script, capsys):
    with pytest.raises(SystemExit):
        script.arguments(["dual/multi30k", "prepare", "--workers", "0"])
    assert "--workers: 0: allowed: 1 or more" in capsys.readouterr().err
