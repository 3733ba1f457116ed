"""`make matrix`: the table of Pythons and versions of torch."""

import sys
from pathlib import Path

import pytest
from campaigns import versions

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = "# Title\n\n<!-- begin versions -->\n{}\n<!-- end versions -->\n\nafter\n"


def row(python="3.11.7", torch="2.13.0+cpu", passed=5, date="2026-01-02"):
    return versions.Row(python, torch, "2.4.6", "1.3.2 / 2.3.0", "all", passed, 0, 1, date)


def test_rows_replace_those_of_their_pair(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE.format("\n".join(versions.HEAD)), encoding="utf-8")
    old, other, newest = row(), row(python="3.9.18", torch="1.13.1"), row(torch="2.5.1")
    versions.write_rows(page, [old, other])
    again = row(python="3.11.9", torch="2.13.0", passed=6)
    versions.write_rows(page, [newest, again])
    assert versions.read_rows(page) == [other, newest, again]
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Title\n\n<!-- begin") and text.endswith("versions -->\n\nafter\n")
    assert [file.name for file in tmp_path.iterdir()] == ["page.md"]


def test_a_page_without_markers_is_refused(tmp_path):
    (tmp_path / "page.md").write_text("# Title\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="begin versions"):
        versions.write_rows(tmp_path / "page.md", [])


def test_the_project_s_page_can_be_read():
    rows = versions.read_rows(REPOSITORY / "docs" / "compat.md")
    assert rows and len({row.pair() for row in rows}) == len(rows)
    assert all(row.passed > 0 for row in rows)


def test_this_interpreter_s_kind_is_found():
    names = [path.name for path in versions.find_pythons()]
    assert names and all(name.startswith("python") for name in names)


def test_an_environment_is_run(tmp_path, monkeypatch):
    (tmp_path / "test_some.py").write_text(
        "import pytest\n"
        "def test_a(): pass\n"
        "def test_b(): pytest.skip('why')\n"
        "def test_c(): assert False\n"
        "@pytest.fixture\n"
        "def broken(): raise ValueError\n"
        "def test_d(broken): pass\n",
        encoding="utf-8",
    )
    environment = Path(sys.executable).parents[1]
    monkeypatch.setitem(versions.SELECTIONS, "some", (str(tmp_path / "test_some.py"),))
    result = versions.run_tests(environment, "some", tmp_path / "report.xml")
    assert (result.passed, result.failed, result.skipped) == (1, 2, 1)
    assert (result.python, result.tests) == (sys.version.split()[0], "some")


def test_a_run_that_crashes_is_a_failure(tmp_path, capsys):
    assert versions.count_tests(tmp_path / "report.xml") == (0, 1, 0)
    assert "without a report" in capsys.readouterr().out


def test_selections_name_files_that_exist():
    names = [name for words in versions.SELECTIONS.values() for name in words]
    paths = [name for name in names if not name.startswith("-")]
    assert paths and all((REPOSITORY / path).exists() for path in paths)


def test_pairs_without_a_wheel_are_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        versions, "set_up", lambda *_: "ERROR: No matching distribution found for torch==9"
    )
    assert versions.run_pair(Path("python3.9"), "9", tmp_path, "all") is None
    assert "python3.9, torch 9: there is no wheel of torch" in capsys.readouterr().out
    assert not (tmp_path / "environment").exists()


@pytest.mark.parametrize(
    "problem, status",
    [("ERROR: No matching distribution found for torch==9", 0), ("make: *** Error 1", 1)],
)
def test_a_set_up_that_fails_is_a_failure(problem, status, tmp_path, monkeypatch):
    words = ["versions", "--python", "python3.9", "--torch", "9", "--folder", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setattr(versions, "set_up", lambda *_: problem)
    assert versions.main() == status


def test_an_unsupported_python_is_a_problem(tmp_path):
    problem = versions.set_up(Path("/no/such/python"), "2.13.0", tmp_path / "environment")
    assert "/no/such/python" in problem
