"""--user-dir in every way that users give it: fresh, imported already, spawned, installed."""

import json
import shutil
from pathlib import Path

import pytest

PROBES = Path(__file__).resolve().parent / "common"
WAYS = ["absolute", "trailing-slash", "relative", "dotted", "twice", "imported-before"]
WAYS += ["installed", "installed-and-imported-before"]


@pytest.fixture(scope="module")
def installed(user_dir, tmp_path_factory):
    """A folder with a copy of the package, as pip would leave it in site-packages."""
    site = tmp_path_factory.mktemp("site-packages")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(user_dir, site / "fairseq_ext", ignore=ignored)
    return site


@pytest.fixture(scope="module")
def outcomes(run, user_dir, toy_corpus, installed, tmp_path_factory):
    """{way: what the probe reports}."""
    elsewhere = str(tmp_path_factory.mktemp("elsewhere"))
    inside = str(user_dir.parent)
    copy = str(installed / "fairseq_ext")
    ways = {
        "absolute": {"user_dir": str(user_dir), "cwd": elsewhere},
        "trailing-slash": {"user_dir": f"{user_dir}/", "cwd": elsewhere},
        "relative": {"user_dir": user_dir.name, "cwd": inside},
        "dotted": {"user_dir": f"./{user_dir.name}/../{user_dir.name}", "cwd": inside},
        "twice": {"user_dir": str(user_dir), "cwd": elsewhere, "times": 2},
        "imported-before": {
            "user_dir": str(user_dir),
            "cwd": elsewhere,
            "before": True,
            "sys_path": [inside],
        },
        "installed": {"user_dir": copy, "cwd": elsewhere},
        "installed-and-imported-before": {
            "user_dir": copy,
            "cwd": elsewhere,
            "before": True,
            "sys_path": [str(installed)],
        },
        "another-copy-imported-before": {
            "user_dir": copy,
            "cwd": elsewhere,
            "before": True,
            "sys_path": [inside],
        },
        "missing": {"user_dir": elsewhere + "/nothing", "cwd": elsewhere},
    }
    command = ["python", "-W", "ignore", PROBES / "user_dir_probe.py", toy_corpus.two]
    output = run(*command, json.dumps(ways))
    return json.loads(output.splitlines()[-1])


@pytest.mark.parametrize("way", WAYS)
def test_model_is_built(way, outcomes, user_dir, installed):
    outcome = outcomes[way]
    assert "error" not in outcome, outcome["error"]
    assert outcome["model"] == "fairseq_ext.dual.transformer.model"
    package = installed / "fairseq_ext" if way.startswith("installed") else user_dir
    assert Path(outcome["file"]) == package / "__init__.py"


def test_two_copies_are_refused_by_name(outcomes):
    assert "is not globally unique" in outcomes["another-copy-imported-before"]["error"]


def test_missing_folder_is_named(outcomes):
    assert "FileNotFoundError" in outcomes["missing"]["error"]
    assert "nothing" in outcomes["missing"]["error"]


@pytest.mark.slow
def test_spawned_child_unpickles_the_config(run, installed, toy_corpus):
    """With a copy that the child can only know from its parent."""
    command = ["python", "-W", "ignore", PROBES / "spawn_probe.py", toy_corpus.two]
    output = run(*command, installed / "fairseq_ext", cwd=toy_corpus.folder)
    assert "child built fairseq_ext.dual.transformer.model" in output
