"""Where fairseq comes from, and how it differs from the release."""

import json
from pathlib import Path

import pytest

from fairseq_ext.tools.installation import fairseq_origin
from fairseq_ext.tools.installation.fairseq_origin import Difference, difference, kind


class Distribution:
    """What an installer left beside a package."""

    version = "0.12.2"

    def __init__(self, folder, url=None, name="fairseq"):
        self.folder, self.url, self.metadata = folder, url, {"Name": name}

    def read_text(self, name):
        if name == "top_level.txt":
            return "fairseq\nfairseq_cli\n"
        return None if self.url is None else json.dumps(self.url)

    def locate_file(self, name):
        return self.folder / name


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Function: what `find_origin` says of a fairseq in tmp_path with this distribution."""
    (tmp_path / "fairseq").mkdir()
    (tmp_path / "fairseq" / "__init__.py").touch()

    def find(*distributions):
        class Spec:
            origin = str(tmp_path / "fairseq" / "__init__.py")

        monkeypatch.setattr(fairseq_origin.importlib.util, "find_spec", lambda name: Spec)
        monkeypatch.setattr(fairseq_origin.metadata, "distributions", lambda: distributions)
        return fairseq_origin.find_origin()

    return find


def test_an_installation_from_an_index(installed, tmp_path):
    origin = installed(Distribution(tmp_path))
    assert origin == (tmp_path, "fairseq", "0.12.2", "from a package index")


def test_a_fork_with_another_name(installed, tmp_path):
    assert installed(Distribution(tmp_path, name="my-fairseq")).name == "my-fairseq"


@pytest.mark.parametrize(
    "url, source",
    [
        (
            {"url": "https://host/fairseq", "vcs_info": {"vcs": "git", "commit_id": "0" * 40}},
            "git, https://host/fairseq at 0000000000",
        ),
        (
            {"url": "file:///src/fairseq", "dir_info": {"editable": True}},
            "editable, from /src/fairseq",
        ),
        ({"url": "file:///src/fairseq", "dir_info": {}}, "installed from /src/fairseq"),
        (
            {"url": "file:///my%20clones/fairseq", "dir_info": {}},
            "installed from /my clones/fairseq",
        ),
    ],
)
def test_installations_from_elsewhere(url, source, installed, tmp_path):
    assert installed(Distribution(tmp_path, url)).source == source


WHEEL = {"url": "https://host/fairseq-0.12.2.whl"}
GIT = {"url": "https://host/fairseq", "vcs_info": {"vcs": "git"}}


@pytest.mark.parametrize("url", [None, WHEEL, GIT])
def test_what_comes_before_an_installation(url, installed, tmp_path):
    origin = installed(Distribution(tmp_path / "site-packages", url))
    assert origin.source == f"{tmp_path}, which comes before the installed one"


def test_a_clone_with_setup_py_develop(installed, tmp_path):
    (tmp_path / "setup.py").touch()
    assert installed(Distribution(tmp_path)).source == f"editable, from {tmp_path}"


def test_a_folder_before_the_installed_one(installed, tmp_path):
    source = installed(Distribution(tmp_path / "site-packages")).source
    assert source == f"{tmp_path}, which comes before the installed one"


def test_a_folder_without_metadata(installed, tmp_path):
    (tmp_path / "fairseq" / "version.txt").write_text("1.0.0a0\n", encoding="utf-8")
    origin = installed()
    assert (origin.name, origin.version) == ("", "1.0.0a0") and "PYTHONPATH" in origin.source


def test_no_fairseq(monkeypatch):
    monkeypatch.setattr(fairseq_origin.importlib.util, "find_spec", lambda name: None)
    assert fairseq_origin.find_origin() is None


def test_the_stored_checksums_are_those_of_the_release():
    origin = fairseq_origin.find_origin()
    if (origin.name, origin.version) != ("fairseq", fairseq_origin.RELEASE):
        pytest.skip(f"the installed fairseq is {origin.name} {origin.version}")
    assert fairseq_origin.checksums(origin.folder) == fairseq_origin.released_checksums()
    assert difference(origin.folder) == ([], [], [])


def test_differences_are_named(monkeypatch, tmp_path):
    for name, text in (("same", "1"), ("changed", "2"), ("more", "3")):
        (tmp_path / "fairseq").mkdir(exist_ok=True)
        (tmp_path / "fairseq" / f"{name}.py").write_text(text, encoding="utf-8")
    release = fairseq_origin.checksums(tmp_path)
    release["fairseq/missing.py"] = release.pop("fairseq/more.py")
    release["fairseq/changed.py"] = "0" * fairseq_origin.LENGTH
    monkeypatch.setattr(fairseq_origin, "released_checksums", lambda: release)
    expected = (["fairseq/changed.py"], ["fairseq/missing.py"], ["fairseq/more.py"])
    assert difference(tmp_path) == expected


@pytest.mark.parametrize(
    "version, changed, more, answer",
    [
        ("0.12.2", [], [], "the release, unchanged"),
        ("0.12.2", ["a.py"], [], "a fork or an edited copy"),
        ("", ["a.py"], [], "a fork or an edited copy"),
        ("0.10.2", ["a.py"], [], "not the release 0.12.2"),
        ("1.0.0a0+abc", ["a.py"], [], "the main branch or a fork of it"),
        ("0.12.3", ["a.py"], [fairseq_origin.ON_MAIN[0]], "the main branch or a fork of it"),
    ],
)
def test_kinds_of_fairseq(version, changed, more, answer):
    assert kind(version, Difference(changed, [], more)) == answer


def test_files_of_the_main_branch_are_not_of_the_release():
    assert not set(fairseq_origin.ON_MAIN) & set(fairseq_origin.released_checksums())
    assert Path(fairseq_origin.CHECKSUMS).is_file()
