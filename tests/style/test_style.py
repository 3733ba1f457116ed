"""How the package is written: typed signatures, names that say something, and their measures."""

from pathlib import Path

import pytest
from style import measure

SOURCES = sorted(measure.PACKAGE.rglob("*.py"))
EXAMPLES = sorted((measure.REPOSITORY / "examples").rglob("*.py"))
BENCHMARKS = sorted((measure.REPOSITORY / "benchmarks").rglob("*.py"))
TYPED_SCRIPTS = [*BENCHMARKS, *(path for path in EXAMPLES if "demo" in path.parts)]
SAMPLE = '''"""A module
of two lines."""
import os  # two in one

def mean(values, *, weight: float = 1.0):
    """Of values."""
    # why
    found = [one for one in values]

    def inner(text: str) -> str:
        it = text
        return it

    return found
'''


def name(path: Path) -> str:
    return path.relative_to(measure.REPOSITORY).as_posix()


@pytest.mark.parametrize("path", SOURCES + TYPED_SCRIPTS, ids=name)
def test_signatures_are_typed(path):
    assert not measure.untyped_functions(path)


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_names_say_something(path):
    assert not measure.vague_names(path)


@pytest.mark.parametrize("path", EXAMPLES + BENCHMARKS, ids=name)
def test_names_in_scripts_say_something(path):
    assert not measure.vague_names(path)


def test_names_in_tests_say_something():
    paths = sorted((measure.REPOSITORY / "tests").rglob("*.py"))
    assert {name(path): vague for path in paths if (vague := measure.vague_names(path))} == {}


def test_a_file_is_measured(tmp_path):
    path = tmp_path / "sample.py"
    path.write_text(SAMPLE, encoding="utf-8")
    assert measure.untyped_functions(path) == [(5, "mean")]
    assert measure.vague_names(path) == [(5, "mean", ["found", "one"]), (10, "inner", ["it"])]
    assert vars(measure.measure(path)) == {
        "functions": 2,
        "with_arguments": 2,
        "typed": 1,
        "vague": 2,
        "code_lines": 7,
        "comment_lines": 2,
        "docstring_lines": 3,
    }


def test_the_table_is_printed(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["measure.py", str(measure.PACKAGE / "duo")])
    measure.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == measure.HEADER and lines[1].startswith("fairseq_ext/duo ")
    assert "modules elsewhere that name routed: " in "\n".join(lines)
