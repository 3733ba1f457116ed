"""--user-dir with examples and single files (fairseq_ext/compat/examples/user_dirs.py)."""

import os
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from fairseq_ext.compat.import_hook import PatchingFinder


@pytest.fixture
def path_without_examples(monkeypatch):
    """sys.path without a folder that has a folder `examples`, such as this repository."""
    places = [place for place in sys.path if not (Path(place or ".") / "examples").is_dir()]
    monkeypatch.setattr(sys, "path", places)
    return places


def test_examples_of_an_installation_are_those_of_a_clone(path_without_examples):
    spec = PatchingFinder.find_spec("examples")
    assert Path(spec.origin).parts[-3:] == ("fairseq", "examples", "__init__.py")


def test_examples_of_another_project_come_first(path_without_examples, tmp_path):
    (tmp_path / "examples").mkdir()
    path_without_examples.insert(0, str(tmp_path))
    first, second = PatchingFinder.find_spec("examples").submodule_search_locations
    assert Path(first) == tmp_path / "examples"
    assert Path(second).parts[-2:] == ("fairseq", "examples")


def test_a_package_of_another_project_stays(path_without_examples, tmp_path):
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "__init__.py").touch()
    path_without_examples.insert(0, str(tmp_path))
    assert Path(PatchingFinder.find_spec("examples").origin).parent == tmp_path / "examples"


# a default without a hash, as the files of a folder may have it
SINGLE_FILE = """
from dataclasses import dataclass

@dataclass
class Inner:
    value: int = 1

@dataclass
class Outer:
    inner: Inner = Inner(5)
"""


@pytest.mark.parametrize("ending", ["", ".py"])
def test_user_dir_may_be_a_file(tmp_path, monkeypatch, ending):
    from fairseq import utils

    name = f"single_file_plugin{len(ending)}"
    (tmp_path / f"{name}.py").write_text(SINGLE_FILE, encoding="utf-8")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("FAIRSEQ_EXT_USER_DIRS", "")
    for _ in range(2):
        utils.import_user_module(Namespace(user_dir=str(tmp_path / (name + ending))))
    assert sys.modules.pop(name).Outer().inner.value == 5
    assert os.environ["FAIRSEQ_EXT_USER_DIRS"] == str(tmp_path / f"{name}.py")


def test_file_needs_a_name_of_its_own(tmp_path):
    from fairseq import utils

    (tmp_path / "json.py").touch()
    with pytest.raises(ImportError, match="there is another module json.*allowed: a file"):
        utils.import_user_module(Namespace(user_dir=str(tmp_path / "json")))


def test_missing_user_dir_is_named(tmp_path):
    from fairseq import utils

    with pytest.raises(FileNotFoundError, match="--user-dir .*nowhere: there is no such"):
        utils.import_user_module(Namespace(user_dir=str(tmp_path / "nowhere")))


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("speech_text_joint_to_text", "speech_text_joint_to_text"),
        ("speech_recognition", "speech_recognition"),
        ("attention_head_selection/src", "speech_to_text_head_selection"),
    ],
)
def test_tasks_are_registered(example, folder, name):
    from fairseq.tasks import TASK_REGISTRY

    example(folder, "")
    example(folder, "")
    assert name in TASK_REGISTRY


def test_a_linked_installation(tmp_path, run):
    import fairseq

    (tmp_path / "link").symlink_to(Path(fairseq.__file__).parent / "examples")
    folder = tmp_path / "link" / "speech_text_joint_to_text"
    code = (
        "from argparse import Namespace; from fairseq import utils; from fairseq.tasks import "
        f"TASK_REGISTRY; utils.import_user_module(Namespace(user_dir={str(folder)!r})); "
        "assert 'speech_text_joint_to_text' in TASK_REGISTRY"
    )
    run(sys.executable, "-c", code, cwd=tmp_path)
